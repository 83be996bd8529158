"""Which images a network was trained on, so that none of them tests it."""

import hashlib
from collections.abc import Collection
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.labelled import DataSet


def marks(images: Float[Tensor, "count maps height width"]) -> list[str]:
    """A mark for each image, made of its pixels: the same image has the same mark, whatever its file is called.

    >>> black, white, night = marks(torch.tensor([0.0, 1.0, 0.0]).reshape(3, 1, 1, 1))
    >>> black == night, black == white
    (True, False)
    """
    return [hashlib.blake2b(image.numpy().tobytes(), digest_size=8).hexdigest() for image in images]


def without_seen(data: DataSet, seen: Collection[str]) -> DataSet:
    """``data``, without the images to test that have one of these marks."""
    new = [place for place, mark in enumerate(marks(data.test.images)) if mark not in seen]
    if len(new) == len(data.test.labels):
        return data
    if not new:
        raise ValueError(
            f"the model was trained on all {len(data.test.labels)} images to test of {data.name}: give it others"
        )
    files = None if data.test_files is None else tuple(data.test_files[place] for place in new)
    return replace(data, test=data.test.take(torch.tensor(new)), test_files=files)
