"""Suggest which images to label next: images that a saved network is uncertain about, and no two alike."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import count as count_from
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn

from tigranet.data import UnreadableFile
from tigranet.data.image_hashes import content_hash
from tigranet.data.letterbox import ImageItem
from tigranet.devices import select_device
from tigranet.evaluation.candidate_pool import Candidate, CandidatePool
from tigranet.evaluation.canonical_logits import double_head
from tigranet.evaluation.canonical_pictures import canonical_pictures, picture_digests
from tigranet.evaluation.file_predictions import BATCH_SIZE, apply_to_files
from tigranet.evaluation.image_selection import select_images
from tigranet.evaluation.suggestions import ImageSuggestion, ImageSuggestions
from tigranet.model import TIGraNet
from tigranet.terminal_text import escape_control_characters
from tigranet.workflows.image_paths import expand_paths, require_readable
from tigranet.workflows.known_images import training_hashes
from tigranet.workflows.saved_run import SavedRun

COUNT = 20
"""Number of images that are suggested by default."""
MAX_COUNT = 2_000
"""Largest number of images that are suggested. A network that is trained on some of them knows better which others."""


class _Columns(NamedTuple):
    """What is computed for an image, in one row of numbers."""

    digest: slice
    """The upper and the lower 32 bits of the hash of the picture, which a floating-point number holds exactly."""
    is_labelled: slice
    logits: slice
    representation: slice


def suggest_images(
    model: str | Path,
    images: str | Path | Iterable[str | Path],
    *,
    count: int = COUNT,
    seed: int = 0,
    labelled_hashes: Collection[str] = (),
    data_dir: Path | None = None,
    device: str = "auto",
    console: Console | None = None,
) -> ImageSuggestions:
    """Suggest which unlabelled images to label next.

    The images are chosen by :func:`~tigranet.evaluation.image_selection.select_images`, from the
    :data:`~tigranet.evaluation.candidate_pool.MAX_CANDIDATES` of which the network is least certain. Only these and
    one batch of images are in memory. The result depends neither on the order of the images nor on quarter turns of
    them; for images that are resized, up to rounding errors. Images that the network was trained on are left out, and
    of images with the same pixels, or with those of a quarter turn, all but one.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        images: Image files or folders of them, see :func:`~tigranet.workflows.image_paths.expand_paths`.
        count: Number of images to suggest.
        seed: Seed of the choice.
        labelled_hashes: Content hashes of further images that are labelled already (see
            :func:`~tigranet.data.leakage.hash_images`), at the size that the network reads.
        data_dir: Folder of the named data sets, for networks that were trained on one of them.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        console: Where to show progress and notices.

    Returns:
        The images, the most uncertain first. There are fewer than ``count`` if there are not enough.

    Raises:
        FileNotFoundError: If the model or an image does not exist.
        ValueError: If no image could be read, or if ``count`` is not possible.
    """
    check_count(count)
    selected = select_device(device)
    network = TIGraNet.from_pretrained(model)
    known = training_hashes(model, network, SavedRun.read(model), data_dir)
    if known is None and console:
        console.print(f"it is not known which images '{model}' was trained on: they may be among the suggested ones")
    paths = expand_paths(images)
    pool, labelled, unreadable = CandidatePool(), 0, list[UnreadableFile]()
    columns, describe = _description(network.to(selected), frozenset(known or ()) | frozenset(labelled_hashes))
    rows = require_readable(_rows(network, describe, paths))
    with (
        console.status("examining images") if console else nullcontext() as status,
        _list_before_error(unreadable, console),
    ):
        for number, row in enumerate(rows, start=1):
            if status:
                status.update(f"examining images: {number}")
            if isinstance(row, UnreadableFile):
                unreadable.append(row)
            elif row[1][columns.is_labelled].any():
                labelled += 1
            else:
                pool.add(_candidate(*row, columns))
        chosen = _choose(pool.candidates(), count, seed, status.update if status else lambda text: None)
    return ImageSuggestions(
        tuple(_suggestion(candidate, network.class_names) for candidate in chosen),
        examined=len(pool),
        labelled=labelled,
        duplicates=pool.duplicates,
        knows_training_images=known is not None,
        unreadable_files=tuple(unreadable),
    )


@contextmanager
def _list_before_error(unreadable: list[UnreadableFile], console: Console | None) -> Iterator[None]:
    """List the files that could not be read before an error that says that there are no others."""
    try:
        yield
    except ValueError:
        if console:
            for file in unreadable:
                text = escape_control_characters(f"{file.path}: {file.reason}")
                console.print(f"  {text}", markup=False, soft_wrap=True)
        raise


def check_count(count: int) -> None:
    """Check a number of images to suggest.

    Args:
        count: The number.

    Raises:
        ValueError: If it is not possible.
    """
    if not 1 <= count <= MAX_COUNT:
        raise ValueError(
            f"expected a number of images to suggest from 1 to {MAX_COUNT:,}, got {count:,}: label some, train again, "
            "and ask for more"
        )


def _description(network: TIGraNet, labelled_hashes: Collection[str]) -> tuple[_Columns, Callable[[Tensor], Tensor]]:
    """Return what is computed for an image, and a function that computes it for a batch."""
    head = double_head(network)
    standardise, layers = head[0], cast("nn.Sequential", head[1])
    hidden, last = layers[:-1], cast("nn.Linear", layers[-1])

    def describe(images: Tensor) -> Tensor:
        pictures = canonical_pictures(images)
        representation = hidden(standardise(network.features(pictures).cpu().double()))
        digests = [[digest >> 32, digest & 0xFFFFFFFF] for digest in picture_digests(pictures)]
        is_labelled = [[float(_is_labelled(image, labelled_hashes))] for image in images.cpu()]
        numbers = [torch.tensor(digests), torch.tensor(is_labelled), last(representation), representation]
        return torch.cat([number.double() for number in numbers], dim=1)

    starts = np.cumsum([0, 2, 1, last.out_features, last.in_features]).tolist()
    return _Columns(*(slice(first, end) for first, end in pairwise(starts))), describe


def _is_labelled(image: Tensor, labelled_hashes: Collection[str]) -> bool:
    """Return whether an image, or a quarter turn of it, is among those with these hashes."""
    if not labelled_hashes:
        return False
    return any(content_hash(image.rot90(turns, (1, 2)).contiguous()) in labelled_hashes for turns in range(4))


def _rows(
    network: TIGraNet, describe: Callable[[Tensor], Tensor], paths: Iterable[ImageItem]
) -> Iterator[tuple[Path, Tensor] | UnreadableFile]:
    for path, row in apply_to_files(network, describe, paths, BATCH_SIZE):
        yield row if isinstance(row, UnreadableFile) else (path, row)


def _candidate(path: Path, row: Tensor, columns: _Columns) -> Candidate:
    high, low = map(int, row[columns.digest].tolist())
    probabilities = row[columns.logits].softmax(0).numpy()
    return Candidate(path, (high << 32) + low, probabilities, row[columns.representation].float().numpy())


def _choose(candidates: list[Candidate], count: int, seed: int, show: Callable[[str], None]) -> list[Candidate]:
    """Return the chosen images, the most uncertain first."""
    if not candidates:
        return []
    counter = count_from(1)
    positions = select_images(
        np.stack([candidate.probabilities for candidate in candidates]),
        np.stack([candidate.representation for candidate in candidates]),
        count,
        seed,
        lambda: show(f"choosing images: {next(counter)}"),
    )
    chosen = [candidates[position] for position in positions]
    return sorted(chosen, key=lambda candidate: (-round(candidate.uncertainty, 6), candidate.digest))


def _suggestion(candidate: Candidate, class_names: tuple[str, ...]) -> ImageSuggestion:
    order = np.argsort(-candidate.probabilities, kind="stable")[:2].tolist()
    names = [class_names[label] for label in order]
    probabilities = [round(float(candidate.probabilities[label]), 6) for label in order]
    return ImageSuggestion(
        path=str(candidate.path),
        label=names[0],
        probability=probabilities[0],
        second_label=names[1] if len(names) > 1 else None,
        second_probability=probabilities[1] if len(names) > 1 else 0.0,
        uncertainty=round(candidate.uncertainty, 6),
    )
