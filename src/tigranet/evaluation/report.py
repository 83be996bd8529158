"""The report on a network: every number that is shown, measured on the test images of a data set.

Without test images, the validation images are measured instead. The report says so wherever it names the images.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from torch import Tensor

from tigranet.baselines.convnet import ConvNet
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.evaluation.batched_inference import inference, module_device
from tigranet.evaluation.calibration_report import CalibrationReport, calibration_report
from tigranet.evaluation.class_report import (
    ClassMetrics,
    Mistake,
    confident_mistakes,
    confusion_counts,
    metrics_by_class,
)
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
from tigranet.evaluation.provenance import machine, versions
from tigranet.evaluation.robustness import Robustness, check_compatible, measure_robustness
from tigranet.model import TIGraNet

QUARTERS = (90, 180, 270)
"""Angles of the quarter turns, in degrees."""
CURVE_IMAGES = 1000
"""Largest number of test images for the curves. The accuracies in the tables use all test images."""
CHANGE_IMAGES = 100
"""Largest number of test images for the change of the outputs."""


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


@dataclass(frozen=True)
class DataSummary:
    """Description of the data set."""

    name: str
    """Name of the data set."""
    how_split: str
    """How the images were split, in words."""
    moved: str
    """How test images are moved, in words."""
    outside: str
    """What enters from outside a moved image."""
    size: tuple[int, int]
    """Height and width of the images."""
    channels: int
    """Number of channels."""
    images: dict[str, tuple[int, ...]]
    """Number of images of each class, by part: train, validation and test."""
    class_names: tuple[str, ...]
    """Names of the classes."""
    unmoved: str = "upright"
    """What images that are not moved are called."""


@dataclass(frozen=True)
class Report:
    """A network on a data set, compared with a plain CNN if there is one, and how the numbers were obtained."""

    data: DataSummary
    """The data set."""
    subjects: tuple[Subject, ...]
    """The network, followed by the CNN if there is one."""
    confusion: tuple[tuple[int, ...], ...]
    """Confusion matrix of the network on upright images: rows are true classes, columns predicted ones."""
    classes: tuple[ClassMetrics, ...]
    """Metrics of the network for each class."""
    mistakes: int
    """Number of wrong predictions of the network for upright images."""
    confident_mistakes: tuple[Mistake, ...]
    """The wrong predictions with the highest probabilities."""
    change_images: int
    """Number of images on which the change of the outputs was measured."""
    seed: int
    """Seed of the random movements."""
    made: dict[str, Any]
    """Provenance: the command, the recipe of the CNN, versions, machine and date."""
    calibration: CalibrationReport | None = None
    """Whether the probabilities of the network are right."""
    part: str = "test"
    """The part of the data set that was measured: ``test``, or ``validation`` if there are no test images."""

    def to_json(self) -> dict[str, Any]:
        """Return all numbers as values that can be written as JSON.

        Returns:
            The fields by name.
        """
        subjects = [asdict(subject) | {"robustness": subject.robustness.to_json()} for subject in self.subjects]
        return asdict(self) | {"subjects": subjects, "notice": self.notice()}

    def notice(self) -> str | None:
        """Return what a reader must know before any number.

        Returns:
            A sentence if there are no test images, otherwise None.
        """
        if self.part == "test":
            return None
        return (
            f"No test images: every number is measured on the {self.subjects[0].robustness.images} {self.part} images. "
            "The training may have used them to select the weights, so the accuracy on new images may be lower."
        )


def measured_part(data: DataSet) -> tuple[str, DataSet]:
    """Return which images of a data set a report measures.

    Args:
        data: The data set.

    Returns:
        ``test`` and the data set itself; or, if there are no test images, ``validation`` and a data set that has the
        validation images in place of the test images.

    Raises:
        ValueError: If there are neither test images nor validation images.
    """
    if len(data.test.labels):
        return "test", data
    if not len(data.validation.labels):
        raise ValueError(f"{data.name} has neither test images nor validation images to measure: add a test part")
    return "validation", replace(data, test=data.validation, test_files=None, test_positions=None)


def report_on(
    net: TIGraNet,
    data: DataSet,
    baseline: ConvNet | None = None,
    *,
    seed: int = 0,
    curve_images: int = CURVE_IMAGES,
    how_split: str = "",
    provenance: dict[str, Any] | None = None,
    temperature: float | None = None,
    console: Console | None = None,
) -> Report:
    """Measure a network on the test images of a data set. The same arguments give the same numbers.

    Without test images, the validation images are measured, see :attr:`Report.part`.

    Args:
        net: The network.
        data: The data set.
        baseline: A plain CNN to compare with.
        seed: Seed of the random movements and of the selection of images for the curves.
        curve_images: Largest number of images for the curves.
        how_split: How the images were split, in words, for the reader of the report.
        provenance: Entries to add to the provenance.
        temperature: Temperature of the network that was fitted on other images, to measure its effect.
        console: Where to draw a progress bar. None draws nothing.

    Returns:
        The report.

    Raises:
        ValueError: If the network does not fit the data set, if ``curve_images`` is less than 1, or if there are
            neither test images nor validation images.
    """
    check_compatible(net, data)
    summary = _summarise(data, how_split)
    part, data = measured_part(data)
    if curve_images < 1:
        raise ValueError(f"the curves need at least 1 image, got curve_images={curve_images}")
    networks: list[tuple[str, TIGraNet | ConvNet]] = [("TIGraNet", net)]
    if baseline is not None:
        networks.append(("plain CNN", baseline))
    curve_data = _sample(data.test, curve_images, seed)
    change_data = _sample(data.test, CHANGE_IMAGES, seed)
    lengths = shift_lengths(min(data.test.images.shape[2:]))
    with _progress(console) as bar:
        steps = len(networks) * (4 + len(ANGLES) * 2 + 4 * len(lengths)) + len(ANGLES)
        task = bar.add_task("measuring", total=steps) if bar else None

        def step(count: int = 1) -> None:
            if bar and task is not None:
                bar.advance(task, count)

        subjects = tuple(
            _measure_subject(name, module, data, curve_data, change_data, seed, step) for name, module in networks
        )
    predictions = predict_classes(net, data.test.images)
    confusion = confusion_counts(data.test, predictions, len(data.class_names))
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Report(
        data=summary,
        subjects=subjects,
        confusion=tuple(tuple(map(int, row)) for row in confusion),
        classes=metrics_by_class(data.test, predictions, data.class_names),
        mistakes=len(data.test.labels) - predictions.count_correct(data.test),
        confident_mistakes=confident_mistakes(data.test, predictions, data.class_names, data.test_files),
        change_images=len(change_data.labels),
        seed=seed,
        calibration=calibration_report(net, data, temperature, seed),
        made=(provenance or {}) | {"versions": versions(), "machine": machine(), "date": date},
        part=part,
    )


def _measure_subject(
    name: str,
    module: TIGraNet | ConvNet,
    data: DataSet,
    curve_data: LabelledImages,
    change_data: LabelledImages,
    seed: int,
    step: Callable[..., None],
) -> Subject:
    """Measure one network, and call ``step`` as the work proceeds."""
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
    return Subject(
        name=name,
        architecture=str(module.architecture),
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        robustness=robustness,
        right=upright.count_correct(data.test),
        quarter_turns=tuple(quarter_turns),
        by_angle=by_angle,
        by_shift=by_shift,
        change=change,
    )


def _sample(data: LabelledImages, at_most: int, seed: int) -> LabelledImages:
    """Select at most this many images at random, in their original order."""
    order = torch.randperm(len(data.labels), generator=torch.Generator().manual_seed(seed))
    return data.take(order[:at_most].sort().values)


def _summarise(data: DataSet, how_split: str) -> DataSummary:
    def images_per_class(labels: Tensor) -> tuple[int, ...]:
        return tuple(torch.bincount(labels, minlength=len(data.class_names)).tolist())

    channels, height, width = data.train.images.shape[1:]
    return DataSummary(
        name=data.name,
        how_split=how_split,
        moved=str(data.test_motion),
        outside=data.test_motion.padding,
        size=(height, width),
        channels=channels,
        images={part: images_per_class(getattr(data, part).labels) for part in ("train", "validation", "test")},
        class_names=data.class_names,
        unmoved=data.unmoved,
    )


def _progress(console: Console | None) -> Progress | nullcontext[None]:
    if console is None:
        return nullcontext()
    spinner = SpinnerColumn("line" if console.options.ascii_only else "dots")
    columns = (spinner, TextColumn("{task.description}"), BarColumn(bar_width=20), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)
