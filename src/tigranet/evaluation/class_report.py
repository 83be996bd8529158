"""Which classes are told apart and which are taken for another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.predictions import Predictions


@dataclass(frozen=True)
class ClassFigures:
    """Parts of 1; None where there is nothing to divide by."""

    name: str
    support: int
    """Images of this class."""
    precision: float | None
    """Of the images that were said to be of this class, those that are."""
    recall: float | None
    """Of the images of this class, those that were said to be."""
    f1: float | None


@dataclass(frozen=True)
class Mistake:
    """An image that was taken for another class."""

    image: int
    """Its number in the data."""
    answer: str
    truth: str
    probability: float
    file: str | None = None


def confusion(data: LabelledImages, seen: Predictions, classes: int) -> Int[np.ndarray, "truth answer"]:
    """How many images of each class were said to be of each class."""
    return np.asarray(confusion_matrix(data.labels.numpy(), seen.classes.numpy(), labels=np.arange(classes)))


def figures_by_class(data: LabelledImages, seen: Predictions, class_names: Sequence[str]) -> tuple[ClassFigures, ...]:
    """A row a class, also for a class of which there is no image."""
    precision, recall, f1, support = precision_recall_fscore_support(
        data.labels.numpy(), seen.classes.numpy(), labels=np.arange(len(class_names)), zero_division=np.nan
    )
    return tuple(
        ClassFigures(name, int(images), *(None if math.isnan(value) else float(value) for value in values))
        for name, images, *values in zip(class_names, support, precision, recall, f1, strict=True)
    )


def confident_mistakes(
    data: LabelledImages,
    seen: Predictions,
    class_names: Sequence[str],
    files: Sequence[str] | None = None,
    at_most: int = 12,
) -> tuple[Mistake, ...]:
    """The mistakes with the highest probabilities, the highest first."""
    wrong = (seen.classes != data.labels).nonzero().flatten().tolist()
    chosen = sorted(wrong, key=lambda image: (-float(seen.confidence[image]), image))[:at_most]
    return tuple(
        Mistake(
            image,
            class_names[int(seen.classes[image])],
            class_names[int(data.labels[image])],
            float(seen.confidence[image]),
            None if files is None else files[image],
        )
        for image in chosen
    )
