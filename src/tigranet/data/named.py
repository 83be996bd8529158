"""Data sets by name, each a pure function of a seed."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.data.digits import load_digits


class Labelled(NamedTuple):
    """Images in [0, 1] and the class of each."""

    images: Float[Tensor, "count maps height width"]
    labels: Int[Tensor, " count"]


@dataclass(frozen=True)
class DataSet:
    """Upright images to train, validate and test with; how the test images are transformed is the evaluation's."""

    name: str
    class_names: tuple[str, ...]
    train: Labelled
    validation: Labelled
    test: Labelled


def mnist_012(seed: int = 0) -> DataSet:
    """500 training, 100 validation and 100 test images of the digits 0, 1 and 2, drawn at random (Sec. 5.1)."""
    images, labels = load_digits()
    chosen = torch.nonzero(labels <= 2).flatten()
    chosen = chosen[torch.randperm(len(chosen), generator=torch.Generator().manual_seed(seed))]
    train, validation, test = (Labelled(images[part], labels[part]) for part in chosen[:700].split([500, 100, 100]))
    return DataSet("mnist-012", ("0", "1", "2"), train, validation, test)


NAMED: dict[str, Callable[[int], DataSet]] = {"mnist-012": mnist_012}


def load(name: str, seed: int = 0) -> DataSet:
    """The data set called ``name``.

    >>> load("mnist-012").train.images.shape
    torch.Size([500, 1, 28, 28])
    """
    if name not in NAMED:
        near = get_close_matches(name, NAMED, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(NAMED)}"
        raise ValueError(f"no data set is called '{name}': {hint}")
    return NAMED[name](seed)
