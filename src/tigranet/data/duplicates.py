"""Find images that occur more than once, and keep them from distorting the test.

Images are compared by hashes of their pixels, so that one picture under two names or in two lossless formats is one
image. An image that is in the training part and again in the test part would be recognised rather than classified, and
an image with two labels has no right answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from tigranet.quoted_text import shorten

MAX_EXAMPLES = 4
"""Number of conflicting images that are named."""


@dataclass(frozen=True)
class DuplicateCounts:
    """How many images of a data set occur more than once, and how many were left out for that reason."""

    repeated_rows: int = 0
    """Rows of a table that repeat an earlier row. They count once."""
    duplicate_images: int = 0
    """Images with the same pixels as an earlier image."""
    conflicting_images: int = 0
    """Images with the same pixels as an image of another class."""
    excluded_train: int = 0
    """Training images that were left out, because they are conflicting."""
    excluded_validation: int = 0
    """Validation images that were left out, because they are conflicting or also training images."""
    excluded_test: int = 0
    """Test images that were left out, because they are conflicting or also training or validation images."""
    conflicting_examples: tuple[str, ...] = ()
    """Names of the first conflicting images."""

    def describe(self) -> list[str]:
        """Return the counts as sentences for the user, without those that are zero.

        Returns:
            One sentence per kind of duplicate; an empty list if there are none.

        Example:
            >>> DuplicateCounts(duplicate_images=3, excluded_test=2).describe()
            ['duplicate images: 3; left out: 0 training, 0 validation and 2 test images']
        """
        sentences = []
        if self.repeated_rows:
            sentences.append(f"repeated rows of the table, which count once: {self.repeated_rows}")
        if self.conflicting_images:
            examples = ", ".join(f"'{name}'" for name in self.conflicting_examples)
            sentences.append(
                f"images with the same pixels but different labels: {self.conflicting_images} ({examples})"
            )
        if self.duplicate_images:
            sentences.append(
                f"duplicate images: {self.duplicate_images}; left out: {self.excluded_train} training, "
                f"{self.excluded_validation} validation and {self.excluded_test} test images"
            )
        return sentences


def exclude_duplicates(
    source: Path,
    hashes: Sequence[str],
    labels: Sequence[int],
    parts: Sequence[Int[Tensor, "_"]],
    paths: Sequence[Path] | None = None,
    repeated_rows: int = 0,
) -> tuple[list[Int[Tensor, "_"]], DuplicateCounts]:
    """Leave out of the validation and test parts what a network knows from the earlier parts, and conflicting images.

    A validation image is left out if another image with the same pixels is a training image; a test image also if one
    is a validation image. Images with the same pixels and different labels are left out of all three parts; only if
    a class had no other training images, it keeps them. Duplicates within one part stay.

    Args:
        source: The folder or file that the images come from, for messages.
        hashes: Hash of each image (see :func:`~tigranet.data.leakage.hash_pictures`).
        labels: Label of each image.
        parts: Positions of the training, validation and test images.
        paths: Path of each image, for messages; without paths, images are named by their position.
        repeated_rows: Number of rows of a table that repeat another row, for the counts.

    Returns:
        The positions that remain in each part, in the same order, and the counts. Without duplicates, the positions
        are those of ``parts``.

    Raises:
        ValueError: If there are test images, and none remains.
    """
    first_labels: dict[str, int] = {}
    conflicting_hashes = {
        content
        for content, label in zip(hashes, labels, strict=True)
        if first_labels.setdefault(content, label) != label
    }
    conflicting = [position for position, content in enumerate(hashes) if content in conflicting_hashes]
    train, validation, test = (part.tolist() for part in parts)
    training_labels = {labels[position] for position in train if hashes[position] not in conflicting_hashes}
    remaining = [
        [
            position
            for position in train
            if hashes[position] not in conflicting_hashes or labels[position] not in training_labels
        ]
    ]
    earlier_positions = {hashes[position]: position for position in reversed(train)}
    for part in (validation, test):
        remaining.append(
            [
                position
                for position in part
                if hashes[position] not in conflicting_hashes
                and earlier_positions.get(hashes[position], position) == position
            ]
        )
        earlier_positions = {hashes[position]: position for position in reversed(part)} | earlier_positions
    if test and not remaining[2]:
        raise ValueError(
            f"none of the {len(test)} test images of '{source}' can be used, because each of them is also a training "
            "or validation image, or has two labels: remove the copies, or add other test images"
        )
    counts = DuplicateCounts(
        repeated_rows=repeated_rows,
        duplicate_images=len(hashes) - len(first_labels),
        conflicting_images=len(conflicting),
        excluded_train=len(train) - len(remaining[0]),
        excluded_validation=len(validation) - len(remaining[1]),
        excluded_test=len(test) - len(remaining[2]),
        conflicting_examples=tuple(
            _printable_name(source, paths[position]) if paths else f"image {position}"
            for position in conflicting[:MAX_EXAMPLES]
        ),
    )
    return [torch.tensor(part, dtype=torch.int64) for part in remaining], counts


def _printable_name(source: Path, path: Path) -> str:
    """Return a path relative to the folder of the images, in one printable line.

    >>> _printable_name(Path("photos/table.csv"), Path("photos/nut/1.png"))
    'nut/1.png'
    """
    folder = source if source.is_dir() else source.parent
    return shorten(str(path.relative_to(folder) if path.is_relative_to(folder) else path))
