"""Which images train, which validate, which test."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

HELD_OUT = 0.15
"""The part of each class that is held out to validate, and again to test."""
Indices = Int[Tensor, "_"]


def split(
    labels: Int[Tensor, " images"],
    class_names: Sequence[str],
    seed: int,
    held_out: int = 2,
    groups: Sequence[str] | None = None,
) -> list[Indices]:
    """The training images and ``held_out`` further parts, each with its share of every class, drawn by ``seed``.

    With ``groups``, the images of a group stay together, and the shares are as even as that allows.
    """
    if groups is not None:
        return _split_groups(labels, class_names, seed, held_out, groups)
    generator = torch.Generator().manual_seed(seed)
    parts: list[list[Tensor]] = [[] for _ in range(held_out + 1)]
    for label, name in enumerate(class_names):
        members = torch.nonzero(labels == label).flatten()
        if len(members) <= held_out:
            cure = "choose how many train with --train-images" if held_out > 1 else "say which of them validate"
            raise ValueError(
                f"the class '{name}' has {len(members)} images that can be read, at least {held_out + 1} are needed: "
                f"add images, or {cure}"
            )
        members = members[torch.randperm(len(members), generator=generator)]
        share = max(1, round(HELD_OUT * len(members)))
        for number in range(1, held_out + 1):
            parts[number].append(members[(number - 1) * share : number * share])
        parts[0].append(members[held_out * share :])
    return [torch.cat(part).sort().values for part in parts]


def draw(labels: Int[Tensor, " images"], class_names: Sequence[str], seed: int, count: int) -> tuple[Indices, Indices]:
    """``count`` images to train on, as many of each class as its share, and all the others."""
    classes = len(class_names)
    if not classes <= count < len(labels):
        raise ValueError(f"of {len(labels)} images of {classes} classes, {classes} to {len(labels) - 1} can train")
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(labels), generator=generator)
    members = [order[labels[order] == label] for label in range(classes)]
    wanted = [max(1, count * len(member) // len(labels)) for member in members]
    while (missing := count - sum(wanted)) != 0:  # what rounding left, to the classes furthest from their share
        share = [count * len(member) / len(labels) - have for member, have in zip(members, wanted, strict=True)]
        step = 1 if missing > 0 else -1
        wanted[int(np.argmax(np.multiply(share, step)))] += step
    chosen = torch.cat([member[:have] for member, have in zip(members, wanted, strict=True)])
    others = torch.ones(len(labels), dtype=torch.bool)
    others[chosen] = False
    return chosen.sort().values, torch.nonzero(others).flatten()


def even(labels: Int[Tensor, " images"], seed: int, count: int) -> Indices:
    """``count`` images, as many of each class as of any other, but for one where it does not divide; all, if there are
    no more. A larger draw by the same ``seed`` has those of a smaller one, and others."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    place = torch.empty_like(order)  # of an image among those of its class
    for label in labels.unique():
        own = labels[order] == label
        place[own] = torch.arange(int(own.sum()))
    return order[place.argsort(stable=True)[:count]].sort().values


def _split_groups(
    labels: Tensor, class_names: Sequence[str], seed: int, held_out: int, groups: Sequence[str]
) -> list[Indices]:
    from sklearn.model_selection import StratifiedGroupKFold

    _, group = np.unique(np.asarray(groups), return_inverse=True)
    y = labels.numpy()
    counts = [len(np.unique(group[y == label])) for label in range(len(class_names))]
    fewest = int(np.argmin(counts))
    if counts[fewest] <= held_out:
        raise ValueError(
            f"the class '{class_names[fewest]}' has {counts[fewest]} groups, at least {held_out + 1} are needed "
            "to keep every group in one part"
        )
    folds = StratifiedGroupKFold(min(round(1 / HELD_OUT), counts[fewest]), shuffle=True, random_state=seed)
    drawn = [torch.from_numpy(fold) for _, fold in folds.split(np.zeros(len(y)), y, group)]
    train = torch.cat(drawn[held_out:]).sort().values
    for label, name in enumerate(class_names):
        if not (labels[train] == label).any():
            raise ValueError(f"no group of the class '{name}' is left to train on: use another seed, or more groups")
    return [train, *drawn[:held_out]]
