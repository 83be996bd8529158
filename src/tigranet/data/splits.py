"""Split images into training, validation and test parts."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

HELD_OUT = 0.15
"""Fraction of each class that is held out for validation, and the same again for testing."""
Indices = Int[Tensor, "_"]


def split(
    labels: Int[Tensor, " images"],
    class_names: Sequence[str],
    seed: int,
    held_out: int = 2,
    groups: Sequence[str] | None = None,
) -> list[Indices]:
    """Split images at random into a training part and ``held_out`` further parts, stratified by class.

    Every class contributes the fraction ``HELD_OUT`` of its images, and at least one, to each held-out part.

    Args:
        labels: Label of each image.
        class_names: Name of each class.
        seed: Seed of the random split.
        held_out: Number of held-out parts: 2 for validation and test, 1 for validation alone.
        groups: Group of each image. Images of one group stay in one part, and the fractions are met as closely as
            that allows.

    Returns:
        Positions of the training images, then of each held-out part, all in increasing order.

    Raises:
        ValueError: If a class has too few images or groups for all parts.
    """
    if groups is not None:
        return _split_groups(labels, class_names, seed, held_out, groups)
    generator = torch.Generator().manual_seed(seed)
    parts: list[list[Tensor]] = [[] for _ in range(held_out + 1)]
    for label, name in enumerate(class_names):
        members = torch.nonzero(labels == label).flatten()
        if len(members) <= held_out:
            remedy = (
                "set the number of training images with --train-images"
                if held_out > 1
                else "assign images to the part val"
            )
            raise ValueError(
                f"expected at least {held_out + 1} readable images of the class '{name}', got {len(members)}: "
                f"add images, or {remedy}"
            )
        members = members[torch.randperm(len(members), generator=generator)]
        size = max(1, round(HELD_OUT * len(members)))
        for number in range(1, held_out + 1):
            parts[number].append(members[(number - 1) * size : number * size])
        parts[0].append(members[held_out * size :])
    return [torch.cat(part).sort().values for part in parts]


def draw(labels: Int[Tensor, " images"], class_names: Sequence[str], seed: int, count: int) -> tuple[Indices, Indices]:
    """Draw ``count`` training images at random, at least one of each class, with the classes in proportion.

    A class whose proportional share is less than one image contributes one. The other images are shared by the other
    classes in the proportions of the data. A class with a single image has none left for testing.

    Args:
        labels: Label of each image.
        class_names: Name of each class.
        seed: Seed of the random draw.
        count: Number of images to draw, at least one per class.

    Returns:
        Positions of the images that were drawn, and of all others, both in increasing order.

    Raises:
        ValueError: If a class has no image, or if ``count`` is smaller than the number of classes, or leaves no image
            for testing.
    """
    num_classes = len(class_names)
    if len(labels) <= num_classes:
        raise ValueError(
            f"expected more images than classes, got {len(labels)} images of {num_classes} classes: add images, so "
            "that some are left for testing"
        )
    if not num_classes <= count < len(labels):
        raise ValueError(
            f"expected {num_classes} to {len(labels) - 1} training images, for {len(labels)} images of {num_classes} "
            f"classes, got {count}"
        )
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(labels), generator=generator)
    members = [order[labels[order] == label] for label in range(num_classes)]
    for name, member in zip(class_names, members, strict=True):
        if not len(member):
            raise ValueError(f"expected at least 1 image of the class '{name}', got 0: add images, or remove the class")
    sizes = _proportional_sizes([len(member) for member in members], count)
    train = torch.cat([member[:size] for member, size in zip(members, sizes, strict=True)])
    is_other = torch.ones(len(labels), dtype=torch.bool)
    is_other[train] = False
    return train.sort().values, torch.nonzero(is_other).flatten()


def draw_balanced(labels: Int[Tensor, " images"], seed: int, count: int) -> Indices:
    """Draw ``count`` images at random, with all classes equally frequent.

    If ``count`` is not a multiple of the number of classes, some classes have one image more than others. A class with
    too few images contributes all of them. With the same seed, a larger draw contains every smaller one.

    Args:
        labels: Label of each image.
        seed: Seed of the random draw.
        count: Number of images to draw; all images, if there are not more.

    Returns:
        Positions of the images, in increasing order.
    """
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    rank_in_class = torch.empty_like(order)
    for label in labels.unique():
        is_member = labels[order] == label
        rank_in_class[is_member] = torch.arange(int(is_member.sum()))
    return order[rank_in_class.argsort(stable=True)[:count]].sort().values


def _proportional_sizes(counts: Sequence[int], count: int) -> list[int]:
    """Share ``count`` images among classes of ``counts`` images: in proportion, and at least one for each class.

    scikit-learn's ``StratifiedShuffleSplit`` does not fit: it refuses classes of one image, and leaves classes whose
    share rounds to zero without any image.
    """
    sizes = [1] * len(counts)
    shared = list(range(len(counts)))  # classes that contribute more than one image
    while True:
        remaining, total = count - (len(counts) - len(shared)), sum(counts[label] for label in shared)
        frequent = [label for label in shared if remaining * counts[label] >= total]
        if len(frequent) == len(shared):
            break
        shared = frequent  # the image of each rare class leaves fewer for the others, so another may become rare
    for label in shared:
        sizes[label] = remaining * counts[label] // total
    shortfalls = {label: remaining * counts[label] / total - sizes[label] for label in shared}
    largest = sorted(shared, key=lambda label: -shortfalls[label])
    for label in largest[: count - sum(sizes)]:  # round up where rounding down lost most
        sizes[label] += 1
    return sizes


def _split_groups(
    labels: Tensor, class_names: Sequence[str], seed: int, held_out: int, groups: Sequence[str]
) -> list[Indices]:
    from sklearn.model_selection import StratifiedGroupKFold

    _, group = np.unique(np.asarray(groups), return_inverse=True)
    y = labels.numpy()
    group_counts = [len(np.unique(group[y == label])) for label in range(len(class_names))]
    rarest = int(np.argmin(group_counts))
    if group_counts[rarest] <= held_out:
        raise ValueError(
            f"expected at least {held_out + 1} groups of the class '{class_names[rarest]}', one per part, "
            f"got {group_counts[rarest]}"
        )
    splitter = StratifiedGroupKFold(min(round(1 / HELD_OUT), group_counts[rarest]), shuffle=True, random_state=seed)
    folds = [torch.from_numpy(fold) for _, fold in splitter.split(np.zeros(len(y)), y, group)]
    train = torch.cat(folds[held_out:]).sort().values
    for label, name in enumerate(class_names):
        if not (labels[train] == label).any():
            raise ValueError(f"no group of the class '{name}' is left for training: use another seed, or more groups")
    return [train, *folds[:held_out]]
