"""Data sets to start from, and small tasks with other classes: for trainings that start from a trained network.

No test image of plankton or CIFAR-10 is used: starts and tasks are of their training parts, and tasks are measured on
further images of these parts. Steel has only 1,800 images, from which training and validation images of a task are
drawn.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.small_sets import MIN_CLASS_IMAGES, PLANKTON_CLASSES, select_classes
from tigranet.data import DataSet, LabelledImages, load
from tigranet.data.luminance import luminance
from tigranet.data.splits import draw_balanced

VALIDATION_IMAGES = 1_000
"""Largest number of images that a task is measured on."""


@cache
def _load(name: str, folder: Path) -> DataSet:
    return load(name, 0, folder)


def task_classes(data: DataSet) -> Tensor:
    """Return the classes of plankton that tasks are drawn from: every second one of those with many images."""
    return torch.nonzero(data.train.labels.bincount() >= MIN_CLASS_IMAGES).flatten()[::2]


def plankton_task(images: int, seed: int, folder: Path) -> DataSet:
    """Draw eight classes of plankton, equally many training images of each, and validation images."""
    data = _load("plankton", folder)
    drawn = np.random.default_rng(seed).choice(task_classes(data).numpy(), PLANKTON_CLASSES, replace=False)
    classes = torch.from_numpy(np.sort(drawn))
    names = tuple(data.class_names[label] for label in classes.tolist())
    return _divide(replace(data, class_names=names), select_classes(data.train, classes), images, seed)


def steel_task(images: int, seed: int, folder: Path) -> DataSet:
    """Draw training and validation images of the steel defects."""
    data = _load("neu-steel", folder)
    return _divide(data, _join(data.train, data.test), images, seed)


def reduced(task: Callable[[int, int, Path], DataSet], images: int, seed: int, folder: Path) -> DataSet:
    """Return a task with half the height and width: means of four pixels."""
    data = task(images, seed, folder)
    train, validation = (part._replace(images=F.avg_pool2d(part.images, 2)) for part in (data.train, data.validation))
    return replace(data, train=train, validation=validation, test=train.take([]))


def named_task(name: str, images: int, seed: int, folder: Path) -> DataSet:
    """Draw training images from the training part of a named data set. It has validation images of its own."""
    data = _load(name, folder)
    order = torch.randperm(len(data.validation.labels), generator=torch.Generator().manual_seed(seed))
    return replace(
        data,
        train=data.train.take(draw_balanced(data.train.labels, seed, images)),
        validation=data.validation.take(order[:VALIDATION_IMAGES]),
        test=data.train.take([]),
    )


def plankton_start(folder: Path) -> DataSet:
    """Return all classes of plankton that are in no task."""
    data = _load("plankton", folder)
    others = torch.ones(len(data.class_names), dtype=torch.bool)
    others[task_classes(data)] = False
    classes = torch.nonzero(others).flatten()
    names = tuple(data.class_names[label] for label in classes.tolist())
    return _start(data, names, select_classes(data.train, classes))


def all_plankton_start(folder: Path) -> DataSet:
    """Return all classes of plankton: for a network to ship, not for one to measure on classes of plankton."""
    data = _load("plankton", folder)
    return _start(data, data.class_names, data.train)


def steel_start(folder: Path) -> DataSet:
    """Return all images of the steel defects: not for a network to measure on steel."""
    data = _load("neu-steel", folder)
    return _start(data, data.class_names, _join(data.train, data.test))


def photograph_start(folder: Path) -> DataSet:
    """Return the training images of CIFAR-10 in grey."""
    data = _load("cifar10", folder)
    return _start(data, data.class_names, LabelledImages(luminance(data.train.images), data.train.labels))


TASKS: dict[str, Callable[[int, int, Path], DataSet]] = {
    "steel": steel_task,
    "plankton": plankton_task,
    "eth80": partial(named_task, "eth80"),
    "digits": partial(named_task, "mnist-rot10"),
    "steel-32": partial(reduced, steel_task),
    "plankton-32": partial(reduced, plankton_task),
}
"""By name: functions of the number of training images, the seed and the data folder. The last two have 32x32 pixels."""
STARTS: dict[str, tuple[Callable[[Path], DataSet], int]] = {
    "plankton": (plankton_start, 40),
    "photographs": (photograph_start, 20),
    "steel": (steel_start, 60),
    "all-plankton": (all_plankton_start, 40),
}
"""By name: functions of the data folder, and numbers of epochs."""
SUITABLE_STARTS = {
    "steel": ("plankton", "photographs", "shipped"),
    "plankton": ("plankton", "photographs", "steel", "shipped"),
    "eth80": ("photographs", "shipped"),
    "digits": ("photographs", "shipped"),
    "steel-32": ("photographs", "shipped"),
    "plankton-32": ("photographs", "shipped"),
}
"""For each task: the starts that have seen none of its classes. ``shipped`` is a network of the package, which was
trained on photographs."""


def _join(first: LabelledImages, second: LabelledImages) -> LabelledImages:
    return LabelledImages(torch.cat([first.images, second.images]), torch.cat([first.labels, second.labels]))


def _divide(data: DataSet, part: LabelledImages, images: int, seed: int) -> DataSet:
    """Divide images into training and validation images, at random. There are no test images."""
    chosen = draw_balanced(part.labels, seed, images)
    others = torch.ones(len(part.labels), dtype=torch.bool).scatter(0, chosen, False).nonzero().flatten()
    order = torch.randperm(len(others), generator=torch.Generator().manual_seed(seed))[:VALIDATION_IMAGES]
    return replace(data, train=part.take(chosen), validation=part.take(others[order]), test=part.take([]))


def _start(data: DataSet, names: tuple[str, ...], train: LabelledImages) -> DataSet:
    return replace(data, class_names=names, train=train, validation=train.take([]), test=train.take([]))
