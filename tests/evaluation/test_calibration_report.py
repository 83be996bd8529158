import pytest
import torch
from torch import nn

from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation.calibration_report import calibration_report
from tigranet.evaluation.robustness import QUARTER


class Confident(nn.Module):
    """Says class 0 with a probability of 0.9, and gives NaN for black images."""

    def forward(self, images):
        logits = torch.tensor([[0.9, 0.1]]).log().repeat(len(images), 1)
        return torch.where(images.flatten(1).amax(1, keepdim=True) > 0, logits, float("nan"))


def test_the_error_is_the_difference_between_confidence_and_accuracy():
    images = torch.ones(10, 1, 4, 4)
    part = LabelledImages(images, torch.tensor([0, 1] * 5))
    data = DataSet("ones", ("a", "b"), part, part, part)
    report = calibration_report(Confident(), data)
    assert list(report.errors) == ["upright", QUARTER, "rotated"]
    assert report.errors["upright"] == pytest.approx(40, abs=1e-4)
    assert (report.temperature, report.scaled_errors, report.scaled_bins) == (None, None, None)
    scaled = calibration_report(Confident(), data, temperature=1e9)
    assert scaled.errors == report.errors
    assert scaled.scaled_errors["upright"] == pytest.approx(0, abs=1e-4)
    assert scaled.scaled_bins[0].confidence == pytest.approx(0.5)
    images[0] = 0
    assert calibration_report(Confident(), data).bins[0].confidence == 0
