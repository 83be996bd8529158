import pytest
from scipy.stats import binomtest, norm

from tigranet.evaluation.accuracy_interval import Z_95, accuracy_interval


def test_the_quantile_is_that_of_the_normal_distribution():
    assert pytest.approx(norm.ppf(0.975), abs=1e-12) == Z_95


@pytest.mark.parametrize(
    ("correct", "images"), [(0, 1), (1, 1), (0, 15), (15, 15), (7, 10), (276, 300), (9_999, 10_000)]
)
def test_the_interval_is_that_of_scipy_and_contains_the_accuracy(correct, images):
    expected = binomtest(correct, images).proportion_ci(method="wilson")
    interval = accuracy_interval(100 * correct / images, images)
    assert interval.low == pytest.approx(100 * expected.low, abs=1e-9)
    assert interval.high == pytest.approx(100 * expected.high, abs=1e-9)
    assert interval.low <= 100 * correct / images <= interval.high


def test_more_images_give_a_narrower_interval():
    widths = [
        interval.high - interval.low for interval in (accuracy_interval(90.0, 10**power) for power in range(1, 6))
    ]
    assert widths == sorted(widths, reverse=True)


def test_the_words_name_the_level_the_limits_and_the_images():
    assert str(accuracy_interval(92.0, 300)) == "95 % interval 88.4 to 94.6 from 300 test images"
    assert str(accuracy_interval(100.0, 1)).endswith("from 1 test image")
    assert accuracy_interval(92.0, 300).to_json() == {"low": 88.3727, "high": 94.5653, "images": 300, "level": 0.95}


@pytest.mark.parametrize(("accuracy", "images"), [(50.0, 0), (-1.0, 5), (101.0, 5), (float("nan"), 5)])
def test_no_images_and_impossible_accuracies_are_errors(accuracy, images):
    with pytest.raises(ValueError, match=r"expected an accuracy"):
        accuracy_interval(accuracy, images)
