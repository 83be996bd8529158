"""Folds of a cross-validation that judges labels: stratified by class, with the images of one group in one fold."""

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tigranet.workflows.linear_head import stratified_folds

MIN_OTHER_IMAGES = 2
"""Number of images of a class that must be outside each fold that has images of it."""


def label_folds(
    labels: Int[Tensor, " images"], groups: Sequence[str] | None, folds: int, seed: int
) -> Int[Tensor, " images"]:
    """Assign images to folds.

    Args:
        labels: Labels.
        groups: Group of each image, or None. Images of one group are in one fold.
        folds: Number of folds; there are fewer if there are fewer groups.
        seed: Seed.

    Returns:
        The number of the fold of each image.
    """
    if groups is None:
        return stratified_folds(labels, folds, seed)
    from sklearn.model_selection import StratifiedGroupKFold

    _, group = np.unique(np.asarray(groups), return_inverse=True)
    count = min(folds, int(group.max(initial=-1)) + 1, int(labels.bincount().max()) if len(labels) else 0)
    result = torch.zeros(len(labels), dtype=torch.int64)
    if count < 2:
        return result
    splitter = StratifiedGroupKFold(count, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about classes with fewer images than folds, which are judged if they can be
        for number, (_, held_out) in enumerate(splitter.split(np.zeros(len(labels)), labels.numpy(), group)):
            result[torch.from_numpy(held_out)] = number
    return result


def is_judgeable(labels: Int[Tensor, " images"], folds: Int[Tensor, " images"]) -> Bool[Tensor, " images"]:
    """Return which images belong to a class whose labels can be judged.

    Whichever fold is held out, a classifier must have seen :data:`MIN_OTHER_IMAGES` images of the class, or it would
    call every label of the class wrong.

    Args:
        labels: Labels.
        folds: Number of the fold of each image.

    Returns:
        Whether the class of each image can be judged.

    Example:
        >>> labels, folds = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2]), torch.tensor([0, 1, 2, 0, 1, 1, 1, 1])
        >>> is_judgeable(labels, folds).tolist()
        [True, True, True, False, False, False, False, False]
    """
    result = torch.ones_like(labels, dtype=torch.bool)
    for label in labels.unique():
        of_class = labels == label
        counts = folds[of_class].bincount()
        if int(counts.sum() - counts.max()) < MIN_OTHER_IMAGES:
            result[of_class] = False
    return result
