import pytest

from tigranet.evaluation.accuracy_interval import accuracy_interval
from tigranet.evaluation.sample_size import images_for_width


@pytest.mark.parametrize("accuracy", [0.0, 50.0, 94.0, 100.0])
@pytest.mark.parametrize("width", [2.0, 10.0, 60.0])
def test_the_number_of_images_is_the_smallest_that_gives_the_width(accuracy, width):
    images = images_for_width(accuracy, width)

    def width_of(count: int) -> float:
        interval = accuracy_interval(accuracy, count)
        return interval.high - interval.low

    assert width_of(images) <= width + 1e-9
    assert images == 1 or width_of(images - 1) > width - 1e-9


@pytest.mark.parametrize(("accuracy", "width"), [(120.0, 5.0), (90.0, 0.0), (90.0, 100.0)])
def test_other_numbers_are_an_error(accuracy, width):
    with pytest.raises(ValueError, match=f"got {accuracy}, {width}"):
        images_for_width(accuracy, width)
