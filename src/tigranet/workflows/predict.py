"""Classify image files with a saved network."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tigranet.data import UnreadableFile
from tigranet.devices import select_device
from tigranet.evaluation import Prediction, predict_files
from tigranet.model import TIGraNet
from tigranet.workflows.image_paths import expand_paths, require_readable


@dataclass(frozen=True)
class PredictionResult:
    """The predictions for image files."""

    predictions: tuple[Prediction, ...]
    """One for each file that could be read, in order."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""


def predict(
    model: str | Path, images: str | Path | Iterable[str | Path], *, reject: float = 0.0, device: str = "auto"
) -> PredictionResult:
    """Predict the class of each image file.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        images: Image files, or folders of them.
        reject: Below this probability the prediction is 'unknown'.
        device: Where to compute, see :func:`tigranet.devices.select_device`.

    Returns:
        The predictions, and the files that could not be read.

    Raises:
        FileNotFoundError: If the model or an image does not exist.
        ValueError: If no image could be read.
    """
    results = list(stream_predictions(model, images, reject=reject, device=device))
    return PredictionResult(
        tuple(result for result in results if isinstance(result, Prediction)),
        tuple(result for result in results if isinstance(result, UnreadableFile)),
    )


def stream_predictions(
    model: str | Path, images: str | Path | Iterable[str | Path], *, reject: float = 0.0, device: str = "auto"
) -> Iterator[Prediction | UnreadableFile]:
    """Predict the classes of any number of image files, with only a few of them in memory.

    The model is loaded, and the paths are checked, before the first prediction is asked for.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        images: Image files, or folders of them.
        reject: Below this probability the prediction is 'unknown'.
        device: Where to compute, see :func:`tigranet.devices.select_device`.

    Returns:
        An iterator over the predictions, in the order of the files. An unreadable file gives the reason instead. After
        the last file it raises ``ValueError`` if no image could be read.

    Raises:
        FileNotFoundError: If the model or an image does not exist.
    """
    selected = select_device(device)
    network = TIGraNet.from_pretrained(model)
    return require_readable(predict_files(network.to(selected), expand_paths(images), reject))
