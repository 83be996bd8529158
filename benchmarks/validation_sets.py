"""Small training sets of five kinds of images, with validation images, by which networks and recipes are compared.

No test image is used: the images come from the training and validation parts of the named data sets. Only steel has so
few images that training and validation images are drawn from all of them.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.small_sets import MIN_CLASS_IMAGES, PLANKTON_CLASSES, select_classes
from tigranet.data import DataSet, LabelledImages, load
from tigranet.data.luminance import luminance
from tigranet.data.splits import draw, draw_balanced

VALIDATION_IMAGES = 1_000
"""Largest number of validation images."""


@lru_cache(maxsize=5)
def _load(name: str, seed: int, folder: Path) -> DataSet:
    return load(name, seed, folder)


def _without_test(name: str, images: int, seed: int, folder: Path) -> DataSet:
    """Draw training images from the training part of a data set."""
    data = _load(name, seed, folder)
    return replace(data, train=data.train.take(draw_any(data.train, seed, images)))


def draw_any(part: LabelledImages, seed: int, images: int) -> torch.Tensor:
    """Draw the positions of images of any classes, all of them if there are not more."""
    return torch.randperm(len(part.labels), generator=torch.Generator().manual_seed(seed))[:images]


def _steel(images: int, seed: int, folder: Path) -> DataSet:
    """Draw training and validation images. The data set has so few that they come from all of its images."""
    data = _load("neu-steel", 1_000 + seed, folder)
    everything = LabelledImages(
        torch.cat([data.train.images, data.test.images]), torch.cat([data.train.labels, data.test.labels])
    )
    train, others = draw(everything.labels, data.class_names, 1_000 + seed, images)
    return replace(data, train=everything.take(train), validation=everything.take(others))


def _plankton_8(images: int, seed: int, folder: Path) -> DataSet:
    """Draw eight classes, with equally many training images."""
    data = _load("plankton", 0, folder)
    counts = data.train.labels.bincount()
    large = np.flatnonzero(counts.numpy() >= MIN_CLASS_IMAGES)
    generator = np.random.default_rng(1_000 + seed)
    classes = torch.from_numpy(np.sort(generator.choice(large, PLANKTON_CLASSES, replace=False)))
    part = select_classes(data.train, classes)
    chosen = draw_balanced(part.labels, seed, images)
    others = torch.ones(len(part.labels), dtype=torch.bool).scatter(0, chosen, False).nonzero().flatten()
    names = tuple(data.class_names[label] for label in classes.tolist())
    return replace(data, class_names=names, train=part.take(chosen), validation=part.take(others))


def _enlarged(name: str, images: int, seed: int, folder: Path) -> DataSet:
    """Return a set with twice the height and width, by bicubic interpolation, in place of larger images."""
    data = SETS[name](images, seed, folder)
    train, validation = (
        part._replace(images=F.interpolate(part.images, scale_factor=2, mode="bicubic").clamp(0, 1))
        for part in (data.train, data.validation.take(draw_any(data.validation, 1, VALIDATION_IMAGES)))
    )
    return replace(data, train=train, validation=validation)


def _in_large_frames(images: int, seed: int, folder: Path) -> DataSet:
    """Return the eight classes of plankton in frames of 192x192 pixels, each animal at a random position.

    The animals keep their pixels. The rest of a frame has the median of the border of the image. Positions are such
    that a rotation moves no animal out of the frame.
    """
    data = _plankton_8(images, seed, folder)
    generator = torch.Generator().manual_seed(seed)

    def framed(part: LabelledImages) -> LabelledImages:
        count, _, side, _ = part.images.shape
        border = torch.cat([part.images[..., 0, :], part.images[..., -1, :], *part.images[..., (0, -1)].unbind(-1)], -1)
        frames = border.median(-1).values[..., None, None].repeat(1, 1, 3 * side, 3 * side)
        angle = 2 * math.pi * torch.rand(count, generator=generator)
        radius = side / 1.3 * torch.rand(count, generator=generator).sqrt()
        for frame, image, a, r in zip(frames, part.images, angle.tolist(), radius.tolist(), strict=True):
            top, left = round(side + r * math.sin(a)), round(side + r * math.cos(a))
            frame[:, top : top + side, left : left + side] = image
        return part._replace(images=frames)

    validation = data.validation.take(draw_any(data.validation, 1, VALIDATION_IMAGES))
    return replace(data, train=framed(data.train), validation=framed(validation))


def _reduced(name: str, factor: int, images: int, seed: int, folder: Path) -> DataSet:
    """Return a set with a fraction of the height and width, by averages of squares of pixels."""
    data = SETS[name](images, seed, folder)
    train, validation = (
        part._replace(images=F.avg_pool2d(part.images, factor)) for part in (data.train, data.validation)
    )
    return replace(data, train=train, validation=validation)


def _grey(name: str, images: int, seed: int, folder: Path) -> DataSet:
    """Return a set in colour with the luminance of its images."""
    data = SETS[name](images, seed, folder)
    train, validation = (part._replace(images=luminance(part.images)) for part in (data.train, data.validation))
    return replace(data, train=train, validation=validation)


SETS: dict[str, Callable[[int, int, Path], DataSet]] = {
    "digits": partial(_without_test, "mnist-rot10"),
    "steel": _steel,
    "plankton": partial(_without_test, "plankton"),
    "plankton-8": _plankton_8,
    "eth80": partial(_without_test, "eth80"),
    "eth80-colour": partial(_without_test, "eth80-color"),
    "photographs": partial(_without_test, "cifar10"),
    "photographs-grey": partial(_grey, "photographs"),
    "steel-128": partial(_enlarged, "steel"),
    "plankton-8-128": partial(_enlarged, "plankton-8"),
    "plankton-in-192": _in_large_frames,
    "plankton-in-64": partial(_reduced, "plankton-in-192", 3),
    "steel-32": partial(_reduced, "steel", 2),
    "plankton-8-32": partial(_reduced, "plankton-8", 2),
}
"""By name: functions of the number of training images, the seed and the data folder."""
