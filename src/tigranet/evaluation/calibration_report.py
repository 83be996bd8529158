"""The calibration of a network on test images, upright and rotated, with and without temperature scaling."""

from dataclasses import dataclass

import torch
from torch import nn

from tigranet.data.dataset import DataSet
from tigranet.evaluation.calibration import ConfidenceBin, confidence_bins, expected_calibration_error
from tigranet.evaluation.moved_logits import UPRIGHT, LabelledLogits, rotated_logits
from tigranet.evaluation.predictions import NO_ANSWER, highest_classes


@dataclass(frozen=True)
class CalibrationReport:
    """Expected calibration errors of a network in per cent."""

    errors: dict[str, float]
    """The error by the name of the rotation; the first is that of upright images."""
    bins: tuple[ConfidenceBin, ...]
    """Accuracy by confidence on upright images."""
    temperature: float | None = None
    """Temperature that was fitted on validation images, if there is one."""
    scaled_errors: dict[str, float] | None = None
    """The errors with logits divided by the temperature."""
    scaled_bins: tuple[ConfidenceBin, ...] | None = None
    """Accuracy by confidence on upright images, with logits divided by the temperature."""


def calibration_report(
    module: nn.Module, data: DataSet, temperature: float | None = None, seed: int = 0
) -> CalibrationReport:
    """Measure the calibration on the test images of a data set.

    Args:
        module: The network, from images to logits.
        data: The data set.
        temperature: Temperature that was fitted on other images, or None.
        seed: Seed of the random angles.

    Returns:
        The errors.

    Raises:
        ValueError: If there are no test images.
    """
    by_rotation = rotated_logits(module, data, seed)
    bins = {rotation: _bins(logits, 1.0) for rotation, logits in by_rotation.items()}
    errors = {rotation: expected_calibration_error(groups) for rotation, groups in bins.items()}
    if temperature is None:
        return CalibrationReport(errors, bins[UPRIGHT])
    scaled = {rotation: _bins(logits, temperature) for rotation, logits in by_rotation.items()}
    scaled_errors = {rotation: expected_calibration_error(groups) for rotation, groups in scaled.items()}
    return CalibrationReport(errors, bins[UPRIGHT], temperature, scaled_errors, scaled[UPRIGHT])


def _bins(logits: LabelledLogits, temperature: float) -> tuple[ConfidenceBin, ...]:
    """Group predictions by confidence. An image without a finite answer is wrong, with confidence 0."""
    classes = highest_classes(logits.logits)
    confidence = (logits.logits.double() / temperature).softmax(1).amax(1)
    confidence = torch.where(classes != NO_ANSWER, confidence, 0.0)
    return confidence_bins(confidence, classes == logits.labels)
