"""Folds for cross-validation: every image is tested once, and copies and groups of images stay together."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.data.leakage import hash_pictures
from tigranet.data.mapped_images import empty_images
from tigranet.data.splits import split

COPIED_TOGETHER = 64
"""Number of images that are copied at a time, so that the copy takes little memory."""


@dataclass(frozen=True)
class Folds:
    """Positions of the training, validation and test images of each fold, among all images that are folded."""

    data: DataSet
    """The data set whose images are folded."""
    positions: tuple[tuple[Int[Tensor, "_"], Int[Tensor, "_"], Int[Tensor, "_"]], ...]
    """Training, validation and test images of each fold."""

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[DataSet]:
        """Copy the images of one fold after the other.

        Yields:
            The data set of each fold.
        """
        parts = folded_parts(self.data)
        for positions in self.positions:
            train, validation, test = (_take(parts, part) for part in positions)
            yield replace(
                self.data,
                train=train,
                validation=validation,
                test=test,
                test_files=None,
                test_positions=None,
                groups=None,
            )


def folded_parts(data: DataSet) -> list[LabelledImages]:
    """Return the parts of a data set whose images are folded.

    Args:
        data: The data set.

    Returns:
        All three parts if they were drawn at random. If somebody chose the test images, the other two.
    """
    return [data.train, data.validation, *([data.test] if data.is_split_at_random else [])]


def make_folds(data: DataSet, folds: int, seed: int = 0) -> Folds:
    """Divide the images of a data set into folds, stratified by class.

    Each fold is tested once. Of the other images, 15 % of each class are for validation and the rest for training.
    Images of one group, and images with the same pixels, are never in different folds or parts.

    Args:
        data: The data set.
        folds: Number of folds, at least 2.
        seed: Seed of the random division.

    Returns:
        The folds.

    Raises:
        ValueError: If there are fewer than 2 folds, or if a class has too few images or groups for them.
    """
    if folds < 2:
        raise ValueError(f"expected at least 2 folds, got {folds}")
    parts = folded_parts(data)
    labels = torch.cat([part.labels for part in parts])
    hashes = [content for part in parts for content in hash_pictures(part.images)]
    groups = None if data.groups is None else [name for names in data.groups[: len(parts)] for name in names]
    units = _inseparable_units(hashes, groups)
    _check_classes(labels, units, data.class_names, folds, "images" if groups is None else "groups")
    fold_of_image = _assign(labels, units, folds, seed)
    has_copies = len(set(units)) < len(units)
    result = []
    for number in range(folds):
        rest = torch.nonzero(fold_of_image != number).flatten()
        names = [str(units[position]) for position in rest.tolist()] if has_copies else None
        try:
            train, validation = split(labels[rest], data.class_names, seed, 1, names)
        except ValueError as error:
            raise ValueError(f"the images cannot be divided into {folds} folds: {error}") from None
        test = torch.nonzero(fold_of_image == number).flatten()
        result.append((rest[train], rest[validation], test))
    return Folds(data, tuple(result))


def _inseparable_units(hashes: Sequence[str], groups: Sequence[str] | None) -> list[int]:
    """Return for each image the number of its unit: the images that it is connected to by equal pixels or groups."""
    parents = list(range(len(hashes)))

    def root(position: int) -> int:
        while parents[position] != position:
            parents[position] = parents[parents[position]]
            position = parents[position]
        return position

    for keys in (hashes, groups or ()):
        first: dict[str, int] = {}
        for position, key in enumerate(keys):
            parents[root(position)] = root(first.setdefault(key, position))
    return [root(position) for position in range(len(hashes))]


def _check_classes(labels: Tensor, units: Sequence[int], class_names: Sequence[str], folds: int, kind: str) -> None:
    units_of_class: list[set[int]] = [set() for _ in class_names]
    for label, unit in zip(labels.tolist(), units, strict=True):
        units_of_class[label].add(unit)
    for name, members in zip(class_names, units_of_class, strict=True):
        # One unit of a class in the test part of each fold; beside them, one to train and one to validate.
        required = max(folds, 4)
        if len(members) < required:
            fewer = "" if folds == 2 else ", or use fewer folds"
            raise ValueError(
                f"expected at least {required} different {kind} of the class '{name}' for {folds} folds, got "
                f"{len(members)}: add images{fewer}"
            )


def _assign(labels: Tensor, units: Sequence[int], folds: int, seed: int) -> Int[Tensor, " images"]:
    """Return the number of the fold of each image."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    has_copies = len(set(units)) < len(units)
    splitter = (StratifiedGroupKFold if has_copies else StratifiedKFold)(folds, shuffle=True, random_state=seed % 2**32)
    result = torch.empty_like(labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rare classes were checked before
        for number, (_, fold) in enumerate(splitter.split(np.zeros(len(labels)), labels.numpy(), np.asarray(units))):
            result[torch.from_numpy(fold)] = number
    return result


def _take(parts: Sequence[LabelledImages], positions: Tensor) -> LabelledImages:
    """Select images of several parts by their position in all of them together."""
    pixels = empty_images(len(positions), *parts[0].images.shape[1:])
    start = 0
    for part in parts:
        rows = torch.nonzero((positions >= start) & (positions < start + len(part.labels))).flatten()
        for some in rows.split(COPIED_TOGETHER):
            pixels[some] = part.images[positions[some] - start]
        start += len(part.labels)
    return LabelledImages(pixels, torch.cat([part.labels for part in parts])[positions])
