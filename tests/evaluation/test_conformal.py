from fractions import Fraction
from math import inf, nan

import pytest
import torch

from tigranet.evaluation.conformal import (
    MAX_SCORES,
    ConformalCalibration,
    check_coverage,
    conformal_scores,
    required_images,
)

COVERAGES = (0.07, 0.5, 0.8, 0.9, 0.95, 0.99)


def brute_force_threshold(scores, coverage):
    """The smallest score that at least the given fraction of n + 1 scores do not exceed, one of them being infinite."""
    for score in sorted(scores):
        if sum(other <= score for other in scores) >= Fraction(str(coverage)) * (len(scores) + 1):
            return score
    return inf


@pytest.mark.parametrize("coverage", COVERAGES)
def test_the_threshold_is_the_quantile_of_a_finite_sample(coverage):
    for count in (*range(30), 99, 100, 199):
        scores = torch.rand(count, dtype=torch.float64).tolist()
        calibration = ConformalCalibration(count, tuple(scores))
        assert calibration.threshold(coverage) == brute_force_threshold(scores, coverage)
        assert (calibration.threshold(coverage) < inf) == (count >= required_images(coverage))
        assert (calibration.notice(coverage) is None) == (count >= required_images(coverage))


def test_the_rank_is_exact_for_decimal_numbers():
    """In floating point 100 * 0.07 is more than 7, and the rank would be 8."""
    assert ConformalCalibration(99, tuple(map(float, range(1, 100)))).threshold(0.07) == 7


@pytest.mark.parametrize(("images", "coverage"), [(19, 0.9), (20, 0.95), (50, 0.8), (7, 0.9)])
def test_exchangeable_images_are_covered_with_the_probability_asked_for(images, coverage):
    """2,000 draws of calibration images and 20 test images each, of a network that is often wrong."""
    draws, tests, classes = 2_000, 20, 4
    labels = torch.randint(classes, (draws, images + tests))
    logits = torch.randn(draws, images + tests, classes)
    logits += 1.5 * torch.nn.functional.one_hot(labels, classes) * torch.rand(draws, images + tests, 1)
    covered = total_size = 0
    for draw in range(draws):
        calibration = ConformalCalibration.measure(logits[draw, :images], labels[draw, :images])
        sets = calibration.label_sets(logits[draw, images:], coverage)
        covered += int(sets.gather(1, labels[draw, images:, None]).sum())
        total_size += int(sets.sum())
    share, deviation = covered / (draws * tests), 0.5 / draws**0.5
    assert coverage - 3 * deviation < share
    if images >= required_images(coverage):
        assert share < coverage + 1 / (images + 1) + 0.02 + 3 * deviation  # the most probable label adds a little
        assert total_size < draws * tests * classes
    else:
        assert (share, total_size) == (1, draws * tests * classes)


def test_equal_scores_keep_the_coverage():
    calibration = ConformalCalibration.measure(torch.zeros(50, 3), torch.zeros(50, dtype=torch.int64))
    assert calibration.label_sets(torch.zeros(2, 3), 0.9).all()


def test_sets_grow_with_the_coverage_and_are_never_empty():
    logits, labels = 3 * torch.randn(200, 5), torch.randint(5, (200,))
    calibration = ConformalCalibration.measure(logits, labels)
    images = 3 * torch.randn(100, 5)
    smaller = torch.zeros(100, 5, dtype=torch.bool)
    for coverage in COVERAGES:
        sets = calibration.label_sets(images, coverage)
        assert (sets >= smaller).all()
        assert sets[torch.arange(100), images.argmax(1)].all()
        smaller = sets


def test_noise_of_rounding_errors_changes_no_score_that_coincides_with_the_threshold():
    logits = torch.tensor([[0.25, 0.75]], dtype=torch.float64)
    calibration = ConformalCalibration.measure(logits.expand(40, 2), torch.zeros(40, dtype=torch.int64))
    for noise in (-1e-13, 0.0, 1e-13):
        assert calibration.label_sets(logits + torch.tensor([[noise, -noise]]), 0.9).tolist() == [[True, True]]


def test_scores_are_minus_the_logarithm_of_the_probabilities():
    logits = 5 * torch.randn(10, 4, dtype=torch.float64)
    torch.testing.assert_close(conformal_scores(logits), -logits.softmax(1).log(), atol=1e-6, rtol=0)
    assert conformal_scores(logits.half()).dtype == torch.float64


def test_an_image_without_a_finite_answer_has_an_infinite_score():
    logits = torch.tensor([[nan, 0.0], [inf, 0.0], [1.0, 0.0]])
    calibration = ConformalCalibration.measure(logits, torch.tensor([0, 0, 0]))
    assert (calibration.images, len(calibration.scores)) == (3, 1)
    assert calibration.threshold(0.25) == calibration.scores[0]
    assert calibration.threshold(0.5) == inf
    assert "2 of 3 images" in calibration.notice(0.5)
    assert calibration.label_sets(logits, 0.25).tolist() == [[False, False], [False, False], [True, False]]


def test_of_many_images_a_random_part_is_kept():
    count = MAX_SCORES + 10
    calibration = ConformalCalibration.measure(torch.randn(count, 2), torch.randint(2, (count,)))
    assert calibration.images == len(calibration.scores) == MAX_SCORES


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, 1.5, nan, inf])
def test_a_coverage_outside_0_and_1_is_refused(coverage):
    with pytest.raises(ValueError, match=rf"between 0 and 1.*{coverage}"):
        ConformalCalibration(1, (0.5,)).threshold(coverage)


@pytest.mark.parametrize("coverage", [True, "0.9", None])
def test_a_coverage_that_is_no_number_is_refused(coverage, without_shape_checks):
    with pytest.raises(TypeError, match="coverage"):
        check_coverage(coverage)


def test_more_scores_than_images_are_refused():
    with pytest.raises(ValueError, match="2 for 1"):
        ConformalCalibration(1, (0.5, 0.6))
