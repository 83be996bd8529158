import pytest

from tigranet.data.batch_size import limit_batch_size


@pytest.mark.parametrize("batch_size", [1, 7, 256])
def test_small_images_keep_their_batch_size(batch_size):
    assert all(limit_batch_size(batch_size, side, side) == batch_size for side in (1, 28, 64))


@pytest.mark.parametrize(("height", "width"), [(65, 64), (224, 224), (30, 500), (2048, 2048), (1, 10**6)])
def test_a_batch_of_large_images_has_at_most_the_pixels_of_one_of_small_images(height, width):
    size = limit_batch_size(256, height, width)
    assert 1 <= size < 256
    assert size == 1 or size * height * width <= 256 * 64**2
    assert (size + 1) * height * width > 256 * 64**2
