import pytest
import torch

from tigranet import TIGraNet
from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation.conformal import ConformalCalibration
from tigranet.evaluation.moved_logits import LabelledLogits
from tigranet.evaluation.robustness import QUARTER
from tigranet.evaluation.set_coverage import SetMeasurement, measure_set_coverage, measure_sets


def test_coverage_and_size_of_known_sets():
    calibration = ConformalCalibration(3, (0.1, 0.2, 1.0))  # at coverage 0.75 the threshold is a probability of 0.37
    logits = torch.tensor([[9.0, 0.0, 0.0], [1.0, 1.0, -9.0], [0.0, 0.0, 9.0], [float("nan"), 0.0, 0.0]])
    measured = measure_sets(LabelledLogits(logits, torch.tensor([0, 1, 0, 0])), calibration, 0.75)
    assert measured == SetMeasurement(coverage=50.0, mean_size=1.0, single=50.0)


def test_quarter_turns_have_the_same_coverage_and_other_classes_are_refused():
    part = LabelledImages(torch.rand(60, 1, 9, 9), torch.arange(60) % 3)
    data = DataSet("noise", ("a", "b", "c"), part, part, part)
    calibration = ConformalCalibration(60, tuple(torch.linspace(0.8, 1.4, 60).tolist()))
    measured = measure_set_coverage(TIGraNet("SC[2,2]-S[2]", 3).eval(), data, calibration, 0.5)
    assert measured.by_rotation["upright"] == measured.by_rotation[QUARTER]
    assert (measured.coverage, measured.calibration_images, measured.images) == (0.5, 60, 60)
    assert measured.to_json()["by_rotation"]["rotated"].keys() == {"coverage", "mean_size", "single"}
    with pytest.raises(ValueError, match="other data"):
        measure_set_coverage(TIGraNet("SC[2,2]-S[2]", 2), data, calibration, 0.5)
