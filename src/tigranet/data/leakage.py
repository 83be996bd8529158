"""Prevent leakage: recognise images by their pixels, and remove from a test what a model was trained on."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.data.duplicates import DuplicateCounts, exclude_duplicates


def content_hash(pixels: Float[Tensor, "*batch maps height width"]) -> str:
    """Return a content hash of one image or of a batch. Equal pixels give equal hashes.

    Args:
        pixels: One image, or several, whose order matters.

    Returns:
        The hash as 16 hexadecimal digits.

    Example:
        >>> black, white, night = map(content_hash, torch.tensor([0.0, 1.0, 0.0]).reshape(3, 1, 1, 1))
        >>> black == night, black == white
        (True, False)
    """
    return hashlib.blake2b(np.ascontiguousarray(pixels.numpy()).data, digest_size=8).hexdigest()


def hash_images(images: Float[Tensor, "count maps height width"]) -> list[str]:
    """Return the content hash of each image.

    One image is read at a time, so that images in a file that is mapped into memory may be larger than the memory.

    Args:
        images: The images.

    Returns:
        For each image, the same hash as :func:`content_hash`.
    """
    return [content_hash(images[position]) for position in range(len(images))]


def hash_pictures(images: Float[Tensor, "count maps height width"]) -> list[str]:
    """Return a hash of each picture, which does not depend on how the picture was saved.

    Pixels are rounded to 16 bits before they are hashed. A grey picture that was saved in colour then has the hash of
    the original, although its luminance differs in the last digit. One image is read at a time.

    Args:
        images: The images, in [0, 1].

    Returns:
        The hashes, which are different from those of :func:`hash_images`.
    """
    pictures = (np.rint(images[position].numpy() * np.float32(65535)) for position in range(len(images)))
    return [hashlib.blake2b(picture.astype(np.uint16).tobytes(), digest_size=8).hexdigest() for picture in pictures]


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
