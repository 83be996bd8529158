import pytest
import torch

from tigranet.evaluation.rejection import CURVE_LEVELS, LEVELS, rejection_levels


def test_answers_at_or_above_the_probability_are_given_as_by_predict():
    confidence = torch.tensor([0.3, 0.9, 0.9, 0.95])
    is_correct = torch.tensor([False, True, False, True])
    levels = rejection_levels(confidence, is_correct, (0.0, 0.9, 0.91, 1.0))
    assert [(level.images, level.answered, level.right) for level in levels] == [
        (4, 4, 2),
        (4, 3, 2),
        (4, 1, 1),
        (4, 0, 0),
    ]
    assert [level.coverage for level in levels] == [1.0, 0.75, 0.25, 0.0]
    assert [level.accuracy for level in levels] == [0.5, pytest.approx(2 / 3), 1.0, None]


def test_the_coverage_falls_and_the_levels_are_probabilities():
    torch.manual_seed(0)
    confidence = torch.rand(200)
    for levels in (LEVELS, CURVE_LEVELS):
        assert sorted(levels) == list(levels)
        assert 0 <= levels[0] < levels[-1] <= 1
        coverages = [level.coverage for level in rejection_levels(confidence, confidence > 0.5, levels)]
        assert sorted(coverages, reverse=True) == coverages


def test_no_images_are_an_error():
    with pytest.raises(ValueError, match="at least one answer"):
        rejection_levels(torch.zeros(0), torch.zeros(0, dtype=torch.bool))
