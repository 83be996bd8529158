"""Prevent leakage: recognise images by their pixels, and remove from a test what a model was trained on."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.data.duplicates import DuplicateCounts, exclude_duplicates
from tigranet.data.image_hashes import content_hash, picture_hash
from tigranet.data.shards.stored_images import StoredImages


def hash_images(images: Float[Tensor, "count maps height width"]) -> list[str]:
    """Return the content hash of each image.

    One image is read at a time, so that images in a file that is mapped into memory may be larger than the memory.
    Hashes that are stored in shards are not computed again.

    Args:
        images: The images.

    Returns:
        For each image, the same hash as :func:`~tigranet.data.image_hashes.content_hash`.
    """
    return [
        content_hash(images[position]) if stored is None else stored
        for position, stored in enumerate(_stored_hashes(images, "content"))
    ]


def _stored_hashes(images: Tensor, field: str) -> Iterator[str | None]:
    """Return the hash of each image that is stored in shards, and None for the others."""
    numbers = images.hashes(field) if isinstance(images, StoredImages) else repeat(None, len(images))
    return (None if number is None else f"{number:016x}" for number in numbers)


def hash_pictures(images: Float[Tensor, "count maps height width"]) -> list[str]:
    """Return a hash of each picture, which does not depend on how the picture was saved.

    One image is read at a time. Hashes that are stored in shards are not computed again.

    Args:
        images: The images, in [0, 1].

    Returns:
        For each image, the same hash as :func:`~tigranet.data.image_hashes.picture_hash`.
    """
    return [
        picture_hash(images[position]) if stored is None else stored
        for position, stored in enumerate(_stored_hashes(images, "picture"))
    ]


def exclude_duplicate_images(
    source: Path,
    images: LabelledImages,
    parts: Sequence[Int[Tensor, "_"]],
    paths: Sequence[Path] | None = None,
    repeated_rows: int = 0,
) -> tuple[list[Int[Tensor, "_"]], DuplicateCounts]:
    """Leave out of the parts of a data set what occurs in an earlier part, or has two labels.

    Args:
        source: The folder or file that the images come from, for messages.
        images: All images.
        parts: Positions of the training, validation and test images.
        paths: Path of each image, for messages.
        repeated_rows: Number of rows of a table that repeat another row, for the counts.

    Returns:
        The positions that remain in each part, and the counts (see
        :func:`~tigranet.data.duplicates.exclude_duplicates`).

    Raises:
        ValueError: If there are test images, and none remains.
    """
    hashes = hash_pictures(images.images)
    return exclude_duplicates(source, hashes, images.labels.tolist(), parts, paths, repeated_rows)


def exclude_images(data: DataSet, is_excluded: Sequence[bool]) -> DataSet:
    """Remove test images.

    Args:
        data: The data set.
        is_excluded: For each test image, whether it is removed.

    Returns:
        The data set without these test images, or ``data`` itself if there are none.
    """
    if not any(is_excluded):
        return data
    remaining = [position for position, excluded in enumerate(is_excluded) if not excluded]
    return replace(
        data,
        test=data.test.take(torch.tensor(remaining, dtype=torch.int64)),
        test_files=None if data.test_files is None else tuple(data.test_files[position] for position in remaining),
        test_positions=None if data.test_positions is None else data.test_positions[remaining],
        groups=None
        if data.groups is None
        else (*data.groups[:2], tuple(data.groups[2][position] for position in remaining)),
    )
