"""Small data sets for measurements: a few images per class to train on, and other images to test, rotated at random."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tigranet.data import DataSet, LabelledImages, load
from tigranet.data.augment.rigid import Isometry
from tigranet.data.splits import draw, draw_balanced

PLANKTON_CLASSES = 8
"""Number of classes that are drawn from the 121 of the plankton."""
MIN_CLASS_IMAGES = 150
"""Number of images that a class of plankton must have to be drawn."""
TEST_IMAGES = 400
"""Largest number of test images."""


def plankton(images: int, seed: int, folder: Path) -> DataSet:
    """Draw classes of plankton, training images of them in proportion, and test images."""
    data, names, train, test = _plankton_classes(seed, seed, folder)
    return _reduced("plankton", names, train, test, data.test_motion, images, seed)


def balanced_plankton(images: int, seed: int, folder: Path, test_images: int = TEST_IMAGES) -> DataSet:
    """Draw classes of plankton, equally many training images of each, and test images.

    The test images of all seeds are of the same test part of the plankton, which no choice of a default has used.

    Args:
        images: Number of training images.
        seed: Seed of the draw.
        folder: The data folder.
        test_images: Largest number of test images.

    Returns:
        The images.
    """
    data, names, train, test = _plankton_classes(0, seed, folder)
    train = train.take(draw_balanced(train.labels, seed, images))
    return _reduced("plankton", names, train, test, data.test_motion, images, seed, test_images)


def _plankton_classes(
    split_seed: int, seed: int, folder: Path
) -> tuple[DataSet, tuple[str, ...], LabelledImages, LabelledImages]:
    """Return the plankton, the names of some classes, and their training and test images."""
    data = load("plankton", split_seed, folder)
    counts = data.train.labels.bincount()
    generator = np.random.default_rng(seed)
    large = np.flatnonzero(counts.numpy() >= MIN_CLASS_IMAGES)
    classes = torch.from_numpy(np.sort(generator.choice(large, PLANKTON_CLASSES, replace=False)))
    train, test = (select_classes(part, classes) for part in (data.train, data.test))
    return data, tuple(data.class_names[label] for label in classes.tolist()), train, test


def select_classes(part: LabelledImages, classes: Tensor) -> LabelledImages:
    """Return the images of some classes, in increasing order, which are numbered from 0."""
    rows = torch.nonzero(torch.isin(part.labels, classes)).flatten()
    return LabelledImages(part.images[rows], torch.searchsorted(classes, part.labels[rows]))


def steel(images: int, seed: int, folder: Path, test_images: int = TEST_IMAGES) -> DataSet:
    """Draw training and test images of the steel defects."""
    data = load("neu-steel", seed, folder)
    everything = LabelledImages(
        torch.cat([data.train.images, data.test.images]), torch.cat([data.train.labels, data.test.labels])
    )
    train, test = draw(everything.labels, data.class_names, seed, min(images, len(everything.labels) - test_images))
    return _reduced(
        "steel",
        data.class_names,
        everything.take(train),
        everything.take(test),
        data.test_motion,
        images,
        seed,
        test_images,
    )


def eth80(images: int, seed: int, folder: Path, test_images: int = TEST_IMAGES) -> DataSet:
    """Draw training images of ETH-80, and test images of other objects."""
    data = load("eth80-objects", seed, folder)
    motion = Isometry(rotated=True, padding="reflection")
    return _reduced("eth80", data.class_names, data.train, data.test, motion, images, seed, test_images)


def digits(images: int, seed: int, folder: Path, test_images: int = TEST_IMAGES) -> DataSet:
    """Draw training and test images of the ten digits of MNIST."""
    data = load("mnist-rot10", seed, folder)
    return _reduced("digits", data.class_names, data.train, data.test, data.test_motion, images, seed, test_images)


SETS: dict[str, Callable[[int, int, Path], DataSet]] = {
    "plankton": plankton,
    "steel": steel,
    "eth80": eth80,
    "digits": digits,
}
"""By name: functions of the number of training images, the seed and the data folder."""


def _reduced(
    name: str,
    class_names: tuple[str, ...],
    train: LabelledImages,
    test: LabelledImages,
    motion: Isometry,
    images: int,
    seed: int,
    test_images: int = TEST_IMAGES,
) -> DataSet:
    if images < len(train.labels):
        train = train.take(draw(train.labels, class_names, seed, images)[0])
    order = torch.randperm(len(test.labels), generator=torch.Generator().manual_seed(seed))
    return DataSet(name, class_names, train, train.take([]), test.take(order[:test_images]), motion)
