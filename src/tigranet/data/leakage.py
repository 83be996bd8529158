"""Which images a network was trained on, so that none of them tests it."""

import hashlib
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.dataset import DataSet


def content_hash(pixels: Float[Tensor, "*many maps height width"]) -> str:
    """Of an image, or of many as one, made of the pixels: the same have the same, whatever their files are called.

    >>> black, white, night = map(content_hash, torch.tensor([0.0, 1.0, 0.0]).reshape(3, 1, 1, 1))
    >>> black == night, black == white
    (True, False)
    """
    return hashlib.blake2b(np.ascontiguousarray(pixels.numpy()).data, digest_size=8).hexdigest()


def exclude_images(data: DataSet, seen: Collection[str]) -> DataSet:
    """``data``, without the images to test that have one of these marks."""
    new = [place for place, image in enumerate(data.test.images) if content_hash(image) not in seen]
    if len(new) == len(data.test.labels):
        return data
    if not new:
        raise ValueError(
            f"the model was trained on all {len(data.test.labels)} images to test of {data.name}: give it others"
        )
    files = None if data.test_files is None else tuple(data.test_files[place] for place in new)
    return replace(data, test=data.test.take(torch.tensor(new)), test_files=files)
