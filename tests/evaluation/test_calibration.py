from math import inf, log, nan

import pytest
import torch
import torch.nn.functional as F

from tigranet.evaluation.calibration import (
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    confidence_bins,
    expected_calibration_error,
    fit_temperature,
)


def test_bins_partition_the_predictions():
    confidence, correct = torch.rand(500), torch.rand(500) < 0.5
    bins = confidence_bins(confidence, correct, 10)
    assert sum(group.count for group in bins) == 500
    assert sum(group.count * group.confidence for group in bins) == pytest.approx(float(confidence.double().sum()))
    assert sum(group.count * group.accuracy for group in bins) == pytest.approx(int(correct.sum()))
    for group in bins:
        assert group.confidence * 10 // 1 == pytest.approx(group.confidence * 10, abs=1)
    assert confidence_bins(torch.tensor([0.0, 1.0]), torch.tensor([True, True]), 2)[1].confidence == 1


def test_right_probabilities_have_almost_no_error_and_confident_errors_the_largest():
    confidence = torch.rand(100_000)
    right = expected_calibration_error(confidence_bins(confidence, torch.rand(100_000) < confidence))
    assert right < 1
    assert expected_calibration_error(confidence_bins(torch.ones(5), torch.zeros(5, dtype=torch.bool))) == 100
    with pytest.raises(ValueError, match="at least 1"):
        expected_calibration_error(())


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_the_temperature_of_labels_that_were_drawn_with_it_is_found(temperature):
    logits = 4 * torch.randn(20_000, 5)
    labels = torch.multinomial((logits / temperature).softmax(1), 1).squeeze(1)
    fitted = fit_temperature(logits, labels)
    assert fitted == pytest.approx(temperature, rel=0.05)
    loss = F.cross_entropy(logits.double() / fitted, labels)
    for factor in (0.98, 1.02):
        assert F.cross_entropy(logits.double() / (factor * fitted), labels) > loss


def test_the_temperature_has_limits_and_needs_no_images():
    logits = torch.tensor([[2.0, 0.0]] * 3)
    assert fit_temperature(logits, torch.tensor([0, 0, 0])) == pytest.approx(MIN_TEMPERATURE)
    assert fit_temperature(logits, torch.tensor([1, 1, 1])) == pytest.approx(MAX_TEMPERATURE)
    assert fit_temperature(torch.zeros(3, 2), torch.tensor([0, 1, 1])) == 1
    assert fit_temperature(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64)) == 1
    with_bad = torch.cat([torch.tensor([[4.0, 0.0]] * 4), torch.tensor([[nan, 0.0], [inf, 0.0]])])
    assert fit_temperature(with_bad, torch.tensor([0, 0, 0, 1, 0, 1])) == pytest.approx(4 / log(3))
