"""Data sets with classes held out, and images that show none of the classes, to measure the detection of both."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from tigranet.data import DataSet, LabelledImages, load

UNRELATED_IMAGES = 100
"""Number of images of each kind that is not blank."""
GREY_LEVELS = 21
"""Number of blank frames: black, white, and grey levels between them."""
CATCH_ALL = ("artifacts", "detritus", "unknown", "other", "partial")
"""Words in the names of plankton classes that collect whatever belongs to no other class. They are not drawn."""


@dataclass(frozen=True)
class Draw:
    """How many classes and images are drawn."""

    known_classes: int
    unseen_classes: int
    """Number of classes in each of the parts that are held out."""
    train: int
    """Number of images per known class, here and below."""
    validation: int
    test: int
    unseen: int
    """Number of images per class that is held out."""

    @property
    def class_images(self) -> int:
        """Number of images that a class must have to be drawn."""
        return max(self.train + self.validation + self.test, self.unseen)


@dataclass(frozen=True)
class OpenSet:
    """Known classes to train on, and images of other classes and of no class."""

    data: DataSet
    """The known classes."""
    unseen: dict[str, Tensor]
    """Images of classes that are held out, in the parts 'A', 'B' and 'C'. 'distant C' are those of C whose group, the
    first word of the name, is that of no known class. With too few classes there is no part C."""
    unrelated: dict[str, Tensor]
    """Noise, blank frames and images of other data sets, by name."""


def open_plankton(seed: int, folder: Path, size: int) -> OpenSet:
    """Draw 10 known and 30 unseen species of plankton."""
    draw = Draw(10, 10, train=40, validation=12, test=30, unseen=25)
    others = {"steel": _everything("neu-steel", folder).images, "digits": _digits(folder)}
    return _open_set("plankton", draw, others, seed, folder, size)


def open_steel(seed: int, folder: Path, size: int) -> OpenSet:
    """Draw 4 known and 2 unseen kinds of steel defects."""
    draw = Draw(4, 1, train=60, validation=25, test=75, unseen=150)
    others = {"plankton": _everything("plankton", folder).images, "digits": _digits(folder)}
    return _open_set("neu-steel", draw, others, seed, folder, size)


OPEN_SETS: dict[str, Callable[[int, Path, int], OpenSet]] = {"plankton": open_plankton, "steel": open_steel}
"""By name: functions of the seed, the data folder and the side length of the images."""


def noise_and_blanks(shape: tuple[int, int, int], seed: int) -> dict[str, Tensor]:
    """Return uniform noise, Gaussian noise and blank frames, for images of a shape (maps, height, width)."""
    generator = torch.Generator().manual_seed(seed)
    uniform = torch.rand(UNRELATED_IMAGES, *shape, generator=generator)
    gaussian = 0.5 + 0.2 * torch.randn(UNRELATED_IMAGES, *shape, generator=generator)
    levels = torch.linspace(0, 1, GREY_LEVELS)[:, None, None, None]
    return {"uniform": uniform, "gaussian": gaussian.clamp(0, 1), "blank": levels.expand(-1, *shape).clone()}


def _open_set(name: str, draw: Draw, others: dict[str, Tensor], seed: int, folder: Path, size: int) -> OpenSet:
    everything, names = _everything(name, folder), load(name, 0, folder).class_names
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(everything.labels), generator=generator)
    members = [order[everything.labels[order] == label] for label in range(len(names))]
    large = [
        label
        for label, rows in enumerate(members)
        if len(rows) >= draw.class_images and not set(CATCH_ALL) & set(names[label].split("_"))
    ]
    shuffled = [large[position] for position in torch.randperm(len(large), generator=generator).tolist()]
    known = sorted(shuffled[: draw.known_classes])

    def known_part(start: int, count: int) -> LabelledImages:
        rows = torch.cat([members[label][start : start + count] for label in known])
        labels = torch.arange(len(known)).repeat_interleave(count)
        return LabelledImages(_resize(everything.images[rows], size), labels)

    def unseen_part(held_out: list[int]) -> Tensor:
        rows = [members[label][: draw.unseen] for label in held_out]
        return _resize(everything.images[torch.cat([torch.zeros(0, dtype=torch.long), *rows])], size)

    data = DataSet(
        name,
        tuple(names[label] for label in known),
        known_part(0, draw.train),
        known_part(draw.train, draw.validation),
        known_part(draw.train + draw.validation, draw.test),
    )
    starts = {part: draw.known_classes + number * draw.unseen_classes for number, part in enumerate("ABC")}
    held_out = {part: shuffled[start : start + draw.unseen_classes] for part, start in starts.items()}
    groups = {_group(names[label]) for label in known}
    held_out["distant C"] = [label for label in held_out["C"] if _group(names[label]) not in groups]
    unseen = {part: unseen_part(labels) for part, labels in held_out.items()}
    unrelated = noise_and_blanks((1, size, size), seed)
    for other, images in others.items():
        rows = torch.randperm(len(images), generator=generator)[:UNRELATED_IMAGES]
        unrelated[other] = _resize(images[rows], size)
    return OpenSet(data, unseen, unrelated)


def _group(name: str) -> str:
    return name.split("_")[0]


def _everything(name: str, folder: Path) -> LabelledImages:
    data = load(name, 0, folder)
    parts = (data.train, data.validation, data.test)
    return LabelledImages(torch.cat([part.images for part in parts]), torch.cat([part.labels for part in parts]))


def _digits(folder: Path) -> Tensor:
    return load("mnist-rot10", 0, folder).test.images


def _resize(images: Tensor, size: int) -> Tensor:
    if images.shape[2:] == (size, size):
        return images
    return F.interpolate(images, (size, size), mode="bilinear", align_corners=False, antialias=True).clamp(0, 1)
