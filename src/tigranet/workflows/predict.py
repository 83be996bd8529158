"""Classify image files with a saved network."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tigranet.choices import InferencePrecision
from tigranet.data import UnreadableFile
from tigranet.devices import select_device
from tigranet.evaluation import Prediction, predict_files
from tigranet.evaluation.conformal import check_coverage
from tigranet.evaluation.file_predictions import LabelSets
from tigranet.evaluation.prediction_detail import Detail
from tigranet.model import TIGraNet
from tigranet.workflows.image_paths import expand_paths, require_readable
from tigranet.workflows.model_calibration import require_calibration
from tigranet.workflows.prediction_summary import PredictionCounter, PredictionSummary
from tigranet.workflows.result_stream import ResultStream
from tigranet.workflows.unknown_detection import AUTO, load_unknown_images


@dataclass(frozen=True)
class PredictionResult:
    """The predictions for image files."""

    predictions: tuple[Prediction, ...]
    """One for each file that could be read, in order."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""

    @property
    def summary(self) -> PredictionSummary:
        """Number of images by label."""
        counter = PredictionCounter()
        for _ in counter.count((*self.predictions, *self.unreadable_files)):
            pass
        return counter.summary


def predict(
    model: str | Path,
    images: str | Path | Iterable[str | Path],
    *,
    reject: float = 0.0,
    coverage: float | None = None,
    top: int = 0,
    probabilities: bool = False,
    unknown: str | float = AUTO,
    device: str = "auto",
    precision: InferencePrecision = "32",
    console: Console | None = None,
) -> PredictionResult:
    """Predict the class of each image file.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        images: Image files or folders of them, tables or lists of paths, .npz files, zip archives, or ``-`` for
            standard input, see :func:`~tigranet.workflows.image_paths.expand_paths`.
        reject: Below this probability the prediction is 'unknown'.
        coverage: The probability with which a label set contains the true label, such as 0.95. None predicts no label
            sets. The guarantee is that of :class:`~tigranet.evaluation.conformal.ConformalCalibration`.
        top: Number of most probable classes to list for each image, with their probabilities.
        probabilities: Whether to give the probabilities of all classes.
        unknown: The share of images of known classes to accept, such as 0.95; images that resemble the known classes
            less are 'unknown', in addition to those that ``reject`` excludes. ``auto`` accepts 0.95 if the model has a
            detector of unknown images, and ``off`` labels every image.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        precision: Precision of the graph layers, see :meth:`tigranet.TIGraNet.compute_in`.
        console: Where to print what the user must know about label sets of this coverage.

    Returns:
        The predictions, and the files that could not be read.

    Raises:
        FileNotFoundError: If the model or an image does not exist.
        ValueError: If no image could be read, if ``coverage`` or ``unknown`` is not between 0 and 1, if the model is
            not calibrated, or if it has no detector of unknown images and a share is given.
    """
    results = list(
        stream_predictions(
            model,
            images,
            reject=reject,
            coverage=coverage,
            top=top,
            probabilities=probabilities,
            unknown=unknown,
            device=device,
            precision=precision,
            console=console,
        )
    )
    return PredictionResult(
        tuple(result for result in results if isinstance(result, Prediction)),
        tuple(result for result in results if isinstance(result, UnreadableFile)),
    )


def stream_predictions(
    model: str | Path,
    images: str | Path | Iterable[str | Path],
    *,
    reject: float = 0.0,
    coverage: float | None = None,
    top: int = 0,
    probabilities: bool = False,
    unknown: str | float = AUTO,
    device: str = "auto",
    precision: InferencePrecision = "32",
    console: Console | None = None,
) -> ResultStream[Prediction | UnreadableFile]:
    """Predict the classes of any number of image files, with only a few of them in memory.

    The model is loaded, and the paths are checked, before the first prediction is asked for.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        images: Image files or folders of them, tables or lists of paths, .npz files, zip archives, or ``-`` for
            standard input, see :func:`~tigranet.workflows.image_paths.expand_paths`.
        reject: Below this probability the prediction is 'unknown'.
        coverage: The probability with which a label set contains the true label, as for :func:`predict`.
        top: Number of most probable classes to list for each image, with their probabilities.
        probabilities: Whether to give the probabilities of all classes.
        unknown: The share of images of known classes to accept, as for :func:`predict`.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        precision: Precision of the graph layers, see :meth:`tigranet.TIGraNet.compute_in`.
        console: Where to print what the user must know about label sets of this coverage.

    Returns:
        An iterator over the predictions, in the order of the files, with the names of the classes. An unreadable file
        gives the reason instead. After the last file it raises ``ValueError`` if no image could be read.

    Raises:
        FileNotFoundError: If the model or an image does not exist.
        ValueError: If ``coverage`` or ``unknown`` is not between 0 and 1, if ``top`` is negative, or if the model lacks
            what they need.
    """
    detail = Detail(top, probabilities)
    detail.check()
    selected = select_device(device)
    network = TIGraNet.from_pretrained(model)
    label_sets = load_label_sets(model, network, coverage, console)
    detection = load_unknown_images(model, network, unknown, console)
    results = predict_files(
        network.to(selected).compute_in(precision),
        expand_paths(images),
        reject,
        label_sets=label_sets,
        detail=detail,
        unknown=detection,
    )
    return ResultStream(network.class_names, require_readable(results))


def load_label_sets(
    model: str | Path, network: TIGraNet, coverage: float | None, console: Console | None = None
) -> LabelSets | None:
    """Load what the label sets of a saved model need.

    Args:
        model: The folder of the model, or the name of a model that comes with the package.
        network: The network that was loaded from it.
        coverage: The probability with which a set contains the true label, or None for no sets.
        console: Where to print what the user must know about sets of this coverage.

    Returns:
        The calibration with the coverage, or None if ``coverage`` is None.

    Raises:
        ValueError: If ``coverage`` is not between 0 and 1, or if the model is not calibrated.
    """
    if coverage is None:
        return None
    check_coverage(coverage)
    return LabelSets(require_calibration(model, network, coverage, console), coverage)
