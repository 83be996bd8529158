"""Prevent leakage: remove images from the test set that a model was trained on."""

import hashlib
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.dataset import DataSet


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


def exclude_images(data: DataSet, training_hashes: Collection[str]) -> DataSet:
    """Remove the test images whose content hash is in ``training_hashes``.

    Args:
        data: The data set.
        training_hashes: Hashes of the images that a model was trained on (see :func:`content_hash`).

    Returns:
        The data set without these test images, or ``data`` itself if there are none.

    Raises:
        ValueError: If no test image remains.
    """
    unseen = [position for position, image in enumerate(data.test.images) if content_hash(image) not in training_hashes]
    if len(unseen) == len(data.test.labels):
        return data
    if not unseen:
        raise ValueError(
            f"the model was trained on all {len(data.test.labels)} test images of {data.name}: test it on other images"
        )
    files = None if data.test_files is None else tuple(data.test_files[position] for position in unseen)
    return replace(data, test=data.test.take(torch.tensor(unseen)), test_files=files)
