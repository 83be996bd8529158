"""Explain the predictions of a saved network for image files: evidence maps, as arrays and as pictures."""

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from rich.console import Console

from tigranet.atomic_files import atomic_binary_write
from tigranet.choices import InferencePrecision
from tigranet.data import UnreadableFile
from tigranet.devices import select_device
from tigranet.evaluation.file_explanations import Explanation, class_index, explain_files
from tigranet.evaluation.file_predictions import check_reject
from tigranet.evaluation.prediction_detail import Detail
from tigranet.evaluation.row_writer import open_row_writer
from tigranet.figures.evidence_overlay import draw_evidence
from tigranet.model import TIGraNet
from tigranet.workflows.image_paths import expand_paths, require_readable
from tigranet.workflows.output_folder import check_apart_from_data, check_output_folder
from tigranet.workflows.predict import load_label_sets
from tigranet.workflows.result_stream import ResultStream
from tigranet.workflows.unknown_detection import AUTO, load_unknown_images

TABLE = "evidence.csv"
"""Name of the table in the output folder, with one row per picture."""
COLUMNS = ("path", "picture", "label", "probability", "explained_class", "score", "evidence", "constant")
"""Columns of the table. ``score`` is the sum of ``evidence``, the sum of the map, and ``constant``."""
MAX_STEM = 40
"""Number of characters of the name of an image that the name of its picture contains, at most."""


@dataclass(frozen=True)
class ExplanationResult:
    """The explanations of image files."""

    explanations: tuple[Explanation, ...]
    """One for each file that could be read, in order."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""
    table: Path | None = None
    """The table in the output folder, if there is one. The pictures are beside it."""


def explain(
    model: str | Path,
    images: str | Path | Iterable[str | Path],
    output: str | Path | None = None,
    *,
    explained_class: str | None = None,
    reject: float = 0.0,
    coverage: float | None = None,
    top: int = 0,
    probabilities: bool = False,
    unknown: str | float = AUTO,
    device: str = "auto",
    precision: InferencePrecision = "32",
    console: Console | None = None,
) -> ExplanationResult:
    """Predict the class of each image file, with a map of the evidence for it.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        images: Image files, folders and other sources of images, as for :func:`~tigranet.workflows.predict.predict`.
        output: A folder for one picture per image and a table, ``evidence.csv``; without one nothing is written.
        explained_class: Name of the class to explain; by default the most probable class of each image.
        reject: Below this probability the prediction is 'unknown'.
        coverage: Also predict label sets that contain the true label with this probability.
        top: Number of most probable classes to list for each image, with their probabilities.
        probabilities: Whether to give the probabilities of all classes.
        unknown: The share of images of known classes to accept, see :func:`tigranet.workflows.predict.predict`.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        precision: Precision of the graph layers, see :meth:`tigranet.TIGraNet.compute_in`.
        console: Where to print what the user must know about label sets of this coverage.

    Returns:
        The explanations, and the files that could not be read. All maps are in memory; for many files use
        :func:`stream_explanations`.

    Raises:
        FileNotFoundError: If the model or an image does not exist.
        OSError: If ``output`` cannot be written.
        ValueError: If no image could be read, if there is no class of this name, or if label sets are asked for and
            ``coverage`` is not between 0 and 1 or the model is not calibrated.
    """
    results = list(
        stream_explanations(
            model,
            images,
            output,
            explained_class=explained_class,
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
    return ExplanationResult(
        tuple(result for result in results if isinstance(result, Explanation)),
        tuple(result for result in results if isinstance(result, UnreadableFile)),
        None if output is None else Path(output, TABLE),
    )


def stream_explanations(
    model: str | Path,
    images: str | Path | Iterable[str | Path],
    output: str | Path | None = None,
    *,
    explained_class: str | None = None,
    reject: float = 0.0,
    coverage: float | None = None,
    top: int = 0,
    probabilities: bool = False,
    unknown: str | float = AUTO,
    device: str = "auto",
    precision: InferencePrecision = "32",
    console: Console | None = None,
) -> ResultStream[Explanation | UnreadableFile]:
    """Explain any number of image files, with only a few of them in memory.

    The model is loaded, and the paths are checked, before the first explanation is asked for. Pictures are written as
    explanations are asked for; the table replaces an older one after the last of them.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        images: Image files, folders and other sources of images, as for :func:`~tigranet.workflows.predict.predict`.
        output: A folder for pictures and a table; without one nothing is written.
        explained_class: Name of the class to explain; by default the most probable class of each image.
        reject: Below this probability the prediction is 'unknown'.
        coverage: Also predict label sets that contain the true label with this probability.
        top: Number of most probable classes to list for each image, with their probabilities.
        probabilities: Whether to give the probabilities of all classes.
        unknown: The share of images of known classes to accept, see :func:`tigranet.workflows.predict.predict`.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        precision: Precision of the graph layers, see :meth:`tigranet.TIGraNet.compute_in`.
        console: Where to print what the user must know about label sets of this coverage.

    Returns:
        An iterator over the explanations, in the order of the files, with the names of the classes. An unreadable file
        gives the reason instead. After the last file it raises ``ValueError`` if no image could be read.

    Raises:
        FileNotFoundError: If the model or an image does not exist.
        OSError: If ``output`` cannot be written.
        ValueError: If an argument has an invalid value, or if the model is not calibrated and label sets are asked for.
    """
    selected = select_device(device)
    check_reject(reject)
    detail = Detail(top, probabilities)
    detail.check()
    every = [images] if isinstance(images, str | Path) else list(images)
    folder = None if output is None else Path(output)
    if folder is not None:
        check_output_folder(folder, "set of pictures")
        for path in every:
            check_apart_from_data(folder, path, "pictures")
    network = TIGraNet.from_pretrained(model)
    if explained_class is not None:
        class_index(network, explained_class)
    label_sets = load_label_sets(model, network, coverage, console)
    detection = load_unknown_images(model, network, unknown, console)
    explanations = require_readable(
        explain_files(
            network.to(selected).compute_in(precision),
            expand_paths(every),
            reject,
            explained_class=explained_class,
            label_sets=label_sets,
            detail=detail,
            unknown=detection,
        )
    )
    return ResultStream(network.class_names, explanations if folder is None else _write(explanations, folder))


def _write(
    explanations: Iterator[Explanation | UnreadableFile], folder: Path
) -> Iterator[Explanation | UnreadableFile]:
    """Pass explanations on, and write a picture for each of them and a table of all."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(explanations), open_row_writer(COLUMNS, folder / TABLE) as write:  # type: ignore[type-var]
        for number, explanation in enumerate(explanations, start=1):
            if isinstance(explanation, Explanation):
                picture = folder / picture_name(number, explanation.prediction.path)
                with atomic_binary_write(picture) as file:
                    Image.fromarray(draw_evidence(explanation.image, explanation.evidence)).save(file, format="png")
                write(
                    {
                        "path": explanation.prediction.path,
                        "picture": picture.name,
                        "label": explanation.prediction.label,
                        "probability": explanation.prediction.probability,
                        "explained_class": explanation.explained_class,
                        "score": round(explanation.score, 6),
                        "evidence": round(float(explanation.evidence.double().sum()), 6),
                        "constant": round(explanation.constant, 6),
                    }
                )
            yield explanation


def picture_name(number: int, path: str) -> str:
    """Return the file name of the picture of an image: a number, so that names differ, and the name of the image.

    Args:
        number: Position of the image, starting at 1.
        path: Path of the image. Characters that are not ASCII letters, digits, ``-`` or ``_`` become ``_``.

    Returns:
        The file name.

    Example:
        >>> picture_name(7, "photos/red apple (1).jpeg")
        '00007-red_apple__1_.png'
    """
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", Path(path).stem)[:MAX_STEM]
    return f"{number:05d}-{stem}.png"
