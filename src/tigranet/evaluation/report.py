"""The report on a network: every number that is shown, measured on the test images of a data set.

Without test images, the validation images are measured instead. The report says so wherever it names the images.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from torch import Tensor

from tigranet.baselines.convnet import ConvNet
from tigranet.data.augment.rigid import Padding
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.evaluation.answer_examples import Answer, AnswerTable, ClassExamples
from tigranet.evaluation.answers_by_angle import MAX_TURNED_IMAGES, AnswersByAngle, answers_by_angle
from tigranet.evaluation.calibration_report import CalibrationReport, calibration_report
from tigranet.evaluation.class_report import (
    ClassMetrics,
    Mistake,
    confident_mistakes,
    confusion_counts,
    metrics_by_class,
)
from tigranet.evaluation.predictions import Predictions, logits_of
from tigranet.evaluation.provenance import machine, versions
from tigranet.evaluation.rejection import CURVE_LEVELS, RejectionLevel, rejection_levels
from tigranet.evaluation.report_subject import Subject, count_steps, measure_subject
from tigranet.evaluation.robustness import check_compatible
from tigranet.evaluation.training_history import TrainingHistory
from tigranet.model import TIGraNet

NETWORK, PLAIN_CNN, ROTATED_CNN = "TIGraNet", "plain CNN", "CNN trained with rotations"
"""Names of the networks in a report."""
CURVE_IMAGES = 1000
"""Largest number of test images for the curves. The accuracies in the tables use all test images."""
CHANGE_IMAGES = 100
"""Largest number of test images for the change of the outputs."""
EXAMPLE_CLASSES = 20
"""Largest number of classes of which examples are chosen: those with the most errors."""
WIDE_INTERVAL = 10.0
"""Width of the interval of the accuracy, in percentage points, above which there are too few test images."""


@dataclass(frozen=True)
class DataSummary:
    """Description of the data set."""

    name: str
    """Name of the data set."""
    how_split: str
    """How the images were split, in words."""
    moved: str
    """How test images are moved, in words."""
    outside: Padding
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
    """A network on a data set, compared with CNNs if there are any, and how the numbers were obtained."""

    data: DataSummary
    """The data set."""
    subjects: tuple[Subject, ...]
    """The network, followed by the CNNs if there are any."""
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
    """Provenance: the command, the recipes of the CNNs, versions, machine and date."""
    calibration: CalibrationReport | None = None
    """Whether the probabilities of the network are right."""
    part: str = "test"
    """The part of the data set that was measured: ``test``, or ``validation`` if there are no test images."""
    examples: tuple[ClassExamples, ...] = ()
    """Right and wrong answers of the network by class, at most :data:`EXAMPLE_CLASSES` classes."""
    least_certain: tuple[Answer, ...] = ()
    """The least certain answers of the network."""
    turned: tuple[AnswersByAngle, ...] = ()
    """Answers of all networks for a few images at every angle."""
    rejection: tuple[RejectionLevel, ...] = ()
    """What remains if only answers of at least some probability are given."""
    rejection_curve: tuple[RejectionLevel, ...] = ()
    """The same at more probabilities."""
    history: TrainingHistory | None = None
    """The curve of the training of the network, if it is known."""

    def to_json(self) -> dict[str, Any]:
        """Return all numbers as values that can be written as JSON.

        Returns:
            The fields by name.
        """
        subjects = [
            asdict(subject) | {"robustness": subject.robustness.to_json(), "interval": subject.interval.to_json()}
            for subject in self.subjects
        ]
        return asdict(self) | {"subjects": subjects, "notice": self.notice(), "size_notice": self.size_notice()}

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

    def size_notice(self) -> str | None:
        """Return a warning if there are too few images to know the accuracy well.

        Returns:
            A sentence if the interval of the accuracy is wider than :data:`WIDE_INTERVAL`, otherwise None.
        """
        network = self.subjects[0]
        if network.interval.high - network.interval.low <= WIDE_INTERVAL:
            return None
        images = network.robustness.images
        return (
            f"Small {self.part} set: with {images} image{'' if images == 1 else 's'}, the accuracy on new images is "
            f"known only to lie between {network.interval.low:.0f} and {network.interval.high:.0f}\u00a0% "
            "(95\u00a0% interval). Smaller differences between networks mean little."
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
    baselines: Mapping[str, ConvNet] = MappingProxyType({}),
    *,
    seed: int = 0,
    curve_images: int = CURVE_IMAGES,
    how_split: str = "",
    provenance: dict[str, Any] | None = None,
    temperature: float | None = None,
    history: TrainingHistory | None = None,
    console: Console | None = None,
) -> Report:
    """Measure a network on the test images of a data set. The same arguments give the same numbers.

    Without test images, the validation images are measured, see :attr:`Report.part`.

    Args:
        net: The network.
        data: The data set.
        baselines: CNNs to compare with, by name.
        seed: Seed of the random movements and of the selection of images for the curves.
        curve_images: Largest number of images for the curves.
        how_split: How the images were split, in words, for the reader of the report.
        provenance: Entries to add to the provenance.
        temperature: Temperature of the network that was fitted on other images, to measure its effect.
        history: The curve of the training of the network, for the reader of the report.
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
    networks: dict[str, TIGraNet | ConvNet] = {NETWORK: net, **baselines}
    curve_data = _sample(data.test, curve_images, seed)
    change_data = _sample(data.test, CHANGE_IMAGES, seed)
    size = min(data.test.images.shape[2:])
    with _progress(console) as bar:
        steps = sum(count_steps(module, size) for module in networks.values())
        task = bar.add_task("measuring", total=steps) if bar else None

        def step(count: int = 1) -> None:
            if bar and task is not None:
                bar.advance(task, count)

        subjects = tuple(
            measure_subject(name, module, data, curve_data, change_data, seed, step)
            for name, module in networks.items()
        )
    answers = AnswerTable(data.test, logits_of(net, data.test.images), data.class_names, data.test_files)
    predictions = Predictions(answers.classes, answers.confidence)
    turned = answers_by_angle(networks, data.test, answers.typical_images(MAX_TURNED_IMAGES), data.test_motion.padding)
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
        examples=tuple(answers.class_examples(label) for label in _example_classes(answers)),
        least_certain=answers.least_certain(),
        turned=turned,
        rejection=rejection_levels(answers.confidence, answers.is_right),
        rejection_curve=rejection_levels(answers.confidence, answers.is_right, CURVE_LEVELS),
        history=history,
    )


def _example_classes(answers: AnswerTable) -> list[int]:
    """Return the classes with images that have the most wrong answers, in their order."""
    classes = len(answers.class_names)
    images = torch.bincount(answers.labels, minlength=classes)
    errors = torch.bincount(answers.labels[~answers.is_right], minlength=classes)
    order = sorted(range(classes), key=lambda label: (-int(errors[label]), -int(images[label]), label))
    return sorted(label for label in order[:EXAMPLE_CLASSES] if images[label])


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
