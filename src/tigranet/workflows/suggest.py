"""Suggest which images to label next and which labels to check, and write both as a page with thumbnails."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from torch import Tensor

from tigranet.data import DataSet, read_letterboxed
from tigranet.data.leakage import hash_images
from tigranet.data.standard_input import STANDARD_INPUT
from tigranet.evaluation.suggestions import ImageSuggestions, LabelSuggestions
from tigranet.figures.suggestions import IMAGES_NAME, LABELS_NAME, MAX_SHOWN, PAGE_NAME, save_suggestions
from tigranet.model import TIGraNet
from tigranet.workflows.image_paths import expand_paths
from tigranet.workflows.image_suggestions import COUNT, check_count, suggest_images
from tigranet.workflows.label_suggestions import suggest_labels
from tigranet.workflows.labelled_data import LabelledData, load_labelled_data
from tigranet.workflows.output_folder import check_apart_from_data, check_output_folder
from tigranet.workflows.saved_run import SavedRun

THUMBNAIL_SIZE = 96
"""Side length of the thumbnails in pixels."""


@dataclass(frozen=True)
class SuggestResult:
    """Which images to label next, and which labels to check."""

    images: ImageSuggestions
    """Images to label."""
    labels: LabelSuggestions | None = None
    """Labels to check; None if no labelled images were given."""
    page: Path | None = None
    """The HTML page, if it was written; the tables are in CSV files beside it."""


def suggest(
    model: str | Path,
    images: str | Path | Iterable[str | Path],
    output: str | Path | None = None,
    *,
    train: str | Path | DataSet | None = None,
    count: int = COUNT,
    seed: int = 0,
    data_dir: Path | None = None,
    device: str = "auto",
    command: str = "",
    console: Console | None = None,
) -> SuggestResult:
    """Suggest which images to label next and, if labelled images are given, which of their labels to check.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        images: Unlabelled images, see :func:`~tigranet.workflows.image_paths.expand_paths`.
        output: The folder to write the page and the tables to; without one nothing is written.
        train: Labelled images whose labels are checked: the path of the user's images, the name of a data set, or a
            data set. Images that are among them are not suggested.
        count: Number of images to suggest.
        seed: Seed of the choice of images.
        data_dir: Folder of the named data sets.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        command: The command that the user typed, for the page.
        console: Where to show progress and notices.

    Returns:
        The suggestions, and the page.

    Raises:
        FileNotFoundError: If the model, an image or the labelled data do not exist.
        OSError: If ``output`` cannot be written.
        ValueError: If no image could be read, if ``count`` is not possible, or if the labels cannot be judged.
    """
    check_count(count)
    paths = [images] if isinstance(images, str | Path) else list(images)
    if output is not None:
        check_output_folder(Path(output), "page")
        if train is not None:
            check_apart_from_data(Path(output), train, "page")
            _check_not_replaced(Path(output), train)
    labelled: LabelledData | None = None
    labels: LabelSuggestions | None = None
    hashes: list[str] = []
    if train is not None:
        network = TIGraNet.from_pretrained(model)
        labelled = load_labelled_data(network, SavedRun.read(model), train, data_dir, console)
        hashes = hash_images(labelled.images.images)
        labels = suggest_labels(model, labelled, data_dir=data_dir, device=device, console=console)
    chosen = suggest_images(
        model,
        paths,
        count=count,
        seed=seed,
        labelled_hashes=hashes,
        data_dir=data_dir,
        device=device,
        console=console,
    )
    page = None
    if output is not None:
        page = save_suggestions(
            Path(output),
            chosen,
            labels,
            _read_thumbnails(paths, {image.path for image in chosen.images[:MAX_SHOWN]}),
            {} if labels is None or labelled is None else _label_thumbnails(labels, labelled),
            {"model": str(model), "command": command},
        )
    return SuggestResult(chosen, labels, page)


def _check_not_replaced(output: Path, train: str | Path | DataSet) -> None:
    """Check that the labelled images are not listed in a table that the results would replace."""
    if isinstance(train, DataSet) or not Path(train).is_file():
        return
    for name in (PAGE_NAME, IMAGES_NAME, LABELS_NAME):
        if (output / name).exists() and (output / name).samefile(train):
            raise ValueError(f"'{train}' would be replaced by the results: give another folder for the page")


def _read_thumbnails(paths: Sequence[str | Path], chosen: Collection[str]) -> dict[str, Tensor]:
    """Read small pictures of images by their names. An image that can no longer be read has none."""
    if STANDARD_INPUT in map(Path, paths):  # it cannot be read twice, but may have named files
        paths = [path for path in chosen if Path(path).is_file()]
    items = (item for item in expand_paths(paths) if str(item if isinstance(item, Path) else item.path) in chosen)
    pictures = read_letterboxed(items, THUMBNAIL_SIZE, color=True)
    return {str(path): picture for path, picture in pictures if isinstance(picture, Tensor)}


def _label_thumbnails(labels: LabelSuggestions, labelled: LabelledData) -> dict[int, Tensor]:
    """Return small pictures of the images whose labels are to be checked, by position."""
    shown = labels.labels[:MAX_SHOWN]
    if labelled.paths is None:
        return {label.position: labelled.images.images[label.position] for label in shown}
    files = [labelled.paths[label.position] for label in shown]
    pictures = [picture for _, picture in read_letterboxed(files, THUMBNAIL_SIZE, color=True)]
    return {
        label.position: picture for label, picture in zip(shown, pictures, strict=True) if isinstance(picture, Tensor)
    }
