"""A user's own images: a folder with one sub-folder a class, a table of paths and labels, or arrays in an .npz file."""

import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tigranet.data.augment.rigid import Isometry
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.data.folder_index import index_csv, index_folder
from tigranet.data.image_cache import decode_images
from tigranet.data.letterbox import UnreadableFile, usual_size
from tigranet.data.npz_data import read_npz_images
from tigranet.data.splits import draw, split

TABLES = (".csv", ".tsv")
IN_MEMORY = 2**30
"""Bytes of images that are held in memory."""


def is_user_data(path: Path) -> bool:
    """Whether ``path`` is of a kind that :func:`load_user_data` reads."""
    return path.is_dir() or path.suffix.lower() in (*TABLES, ".npz")


def load_user_data(
    path: Path,
    seed: int = 0,
    size: int | None = None,
    color: bool = False,
    group: str | None = None,
    train_images: int | None = None,
    step: Callable[[], None] = lambda: None,
) -> tuple[DataSet, list[UnreadableFile]]:
    """The images of ``path`` as a data set, and the files that were left out. ``step`` is called after each file.

    Images are brought to one square size (:func:`~tigranet.data.letterbox.letterbox`): ``size``, or the median of their
    longer sides, at most 64. Where ``path`` does not say which images train, ``seed`` draws 15 % of each class to
    validate and 15 % to test; or ``train_images`` of them to train, and all the others test. Where it does, images to
    validate that are missing are drawn likewise, and those to validate serve to test as well. The images of one
    ``group`` are never in two parts (see :mod:`~tigranet.data.folder_index`).
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder '{path}'")
    broken: list[UnreadableFile] = []
    paths: list[Path] | None = None
    if path.suffix.lower() == ".npz":
        arrays = read_npz_images(path, size, color, group)
        class_names, parts, groups = arrays.class_names, arrays.parts, arrays.groups
        every = LabelledImages(arrays.images, torch.tensor(arrays.labels))
    else:
        listing = index_folder(path, group) if path.is_dir() else index_csv(path, group)
        images, read, broken = decode_images(listing.paths, size or usual_size(listing.paths), color, step)
        class_names = listing.class_names
        every = LabelledImages(images, torch.tensor(listing.labels)[read])
        paths = [listing.paths[number] for number in read.tolist()]
        parts = tuple(listing.parts[number] for number in read.tolist())
        groups = None if listing.groups is None else tuple(listing.groups[number] for number in read.tolist())
    _check_trained(path, class_names, every.labels, parts)
    drawn = _parts(every.labels, class_names, parts, groups, seed, train_images)
    moved = Isometry(rotated=True, padding="reflection")  # photographs fill their frame
    files = None if paths is None else tuple(str(paths[place]) for place in drawn[2].tolist())
    train, validation, test = (_taken(every, part) for part in drawn)
    name = path.resolve().name if path.is_dir() else path.stem
    return DataSet(name, class_names, train, validation, test, moved, files), broken


def _parts(
    labels: Tensor,
    class_names: tuple[str, ...],
    parts: tuple[str, ...],
    groups: tuple[str, ...] | None,
    seed: int,
    train_images: int | None,
) -> list[Tensor]:
    given = {name: torch.tensor([place for place, part in enumerate(parts) if part == name]) for name in set(parts)}
    if train_images is not None:
        if set(given) != {""} or groups is not None:
            raise ValueError("a number of training images is drawn from images that have no parts and no groups")
        train, test = draw(labels, class_names, seed, train_images)
        return [train, train[:0], test]
    if "" in given:
        return split(labels, class_names, seed, 2, groups)
    train = given["train"]
    _check_groups(parts, groups)
    if "validation" not in given:
        inside = None if groups is None else [groups[place] for place in train.tolist()]
        kept, held_out = split(labels[train], class_names, seed, 1, inside)
        train, given["validation"] = train[kept], train[held_out]
    return [train, given["validation"], given.get("test", given["validation"])]


def _taken(every: LabelledImages, part: Tensor) -> LabelledImages:
    """Some of the images: in memory, or where they are very many in a nameless file that is mapped into it."""
    shape = (len(part), *every.images.shape[1:])
    if math.prod(shape) * every.images.itemsize <= IN_MEMORY:
        return every.take(part)
    with tempfile.TemporaryFile() as file:
        images = torch.from_numpy(np.memmap(file, np.float32, "w+", shape=shape))
    for rows in torch.arange(len(part)).split(1024):
        images[rows] = every.images[part[rows]]
    return LabelledImages(images, every.labels[part])


def _check_trained(path: Path, class_names: tuple[str, ...], labels: Tensor, parts: tuple[str, ...]) -> None:
    found = set(parts)
    if not found & {"", "train"}:
        raise ValueError(
            f"no image of '{path}' is of the part train and can be read, only of {' and '.join(sorted(found))}: "
            "give that part to some, or leave out the parts and they are drawn"
        )
    trained = {label for label, part in zip(labels.tolist(), parts, strict=True) if part in ("", "train")}
    for label, name in enumerate(class_names):
        if label not in trained:
            which = "is of the part train and can be read" if "train" in found else "can be read"
            raise ValueError(f"no image of the class '{name}' of '{path}' {which}: add some, or leave the class out")


def _check_groups(parts: tuple[str, ...], groups: tuple[str, ...] | None) -> None:
    where: dict[str, str] = {}
    for part, group in zip(parts, groups or parts, strict=True):
        if groups is not None and where.setdefault(group, part) != part:
            raise ValueError(f"the group '{group}' is in two parts, {where[group]} and {part}: put it into one of them")
