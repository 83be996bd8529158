"""The measurements of one network in a report: its accuracies, its curves, and the change of its outputs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tigranet.baselines.convnet import ConvNet
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.evaluation.accuracy_interval import AccuracyInterval, accuracy_interval
from tigranet.evaluation.batched_inference import inference, module_device
from tigranet.evaluation.curves import (
    ANGLES,
    Curve,
    angle_curve,
    invariance_error_by_angle,
    rotate_all,
    shift_curve,
    shift_lengths,
)
from tigranet.evaluation.predictions import Transform, predict_classes
from tigranet.evaluation.robustness import Robustness, measure_robustness
from tigranet.model import TIGraNet

QUARTERS = (90, 180, 270)
"""Angles of the quarter turns, in degrees."""


@dataclass(frozen=True)
class QuarterTurn:
    """Predictions for all test images rotated by a multiple of 90 degrees, which changes no pixel values."""

    degrees: int
    """The angle."""
    right: int
    """Number of correct predictions."""
    changed: int
    """Number of predictions that differ from those for the upright images."""


@dataclass(frozen=True)
class Subject:
    """The measurements of one network."""

    name: str
    """Name of the network in the report."""
    architecture: str
    """Its architecture, in the paper's notation."""
    parameters: int
    """Number of parameters."""
    robustness: Robustness
    """Accuracies on upright and on moved test images."""
    right: int
    """Number of correct predictions for upright test images."""
    interval: AccuracyInterval
    """Interval of the accuracy on upright images, which counts the test images."""
    quarter_turns: tuple[QuarterTurn, ...]
    """Predictions at each of :data:`QUARTERS`."""
    by_angle: Curve
    """Accuracy and confidence over the angle of rotation."""
    by_shift: Curve
    """Accuracy and confidence over the length of a shift."""
    change: dict[str, tuple[float, ...]]
    """Invariance error of the logits, and of the features if there are any, at the angles of ``by_angle``."""

    def exact(self) -> bool:
        """Whether no prediction changes when the images are rotated by 90, 180 or 270 degrees.

        Returns:
            True if all predictions stay the same.
        """
        return all(turn.changed == 0 for turn in self.quarter_turns)


def measure_subject(
    name: str,
    module: TIGraNet | ConvNet,
    data: DataSet,
    curve_data: LabelledImages,
    change_data: LabelledImages,
    seed: int,
    step: Callable[..., None],
) -> Subject:
    """Measure one network.

    Args:
        name: Name of the network in the report.
        module: The network.
        data: The data set, whose test images are measured.
        curve_data: The images of the curves.
        change_data: The images for the change of the outputs.
        seed: Seed of the random movements.
        step: Called with a number of steps as the work proceeds, see :func:`count_steps`.

    Returns:
        The measurements.
    """
    padding = data.test_motion.padding
    upright = predict_classes(module, data.test.images)
    quarter_turns = []
    for degrees in QUARTERS:
        predictions = predict_classes(module, data.test.images, partial(rotate_all, degrees=float(degrees)))
        changed = int((predictions.classes != upright.classes).sum())
        quarter_turns.append(QuarterTurn(degrees, predictions.count_correct(data.test), changed))
        step()
    robustness = measure_robustness(module, data, seed)
    step()
    by_angle = angle_curve(module, curve_data, padding, step=step)
    by_shift = shift_curve(module, curve_data, padding, step=lambda: step(4))
    outputs: dict[str, Transform] = {"logits": module}
    if isinstance(module, TIGraNet):
        outputs = {"features": module.features} | outputs
    images = change_data.images.to(module_device(module))
    with inference(module):
        change = {
            output: invariance_error_by_angle(function, images, padding, step=step)
            for output, function in outputs.items()
        }
    right = upright.count_correct(data.test)
    return Subject(
        name=name,
        architecture=str(module.architecture),
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        robustness=robustness,
        right=right,
        interval=accuracy_interval(100 * right / len(data.test.labels), len(data.test.labels)),
        quarter_turns=tuple(quarter_turns),
        by_angle=by_angle,
        by_shift=by_shift,
        change=change,
    )


def count_steps(module: TIGraNet | ConvNet, size: int) -> int:
    """Return the number of steps of :func:`measure_subject`, for a progress bar.

    Args:
        module: The network.
        size: Height or width of the images, whichever is smaller.

    Returns:
        The number of steps.
    """
    outputs = 2 if isinstance(module, TIGraNet) else 1
    return len(QUARTERS) + 1 + len(ANGLES) * (1 + outputs) + 4 * len(shift_lengths(size))
