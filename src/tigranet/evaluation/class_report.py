"""Results per class: confusion matrix, precision, recall, and the most confident mistakes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.predictions import Predictions, names_of_answers


@dataclass(frozen=True)
class ClassMetrics:
    """Metrics of one class, as fractions. None where the denominator is zero."""

    name: str
    """Name of the class."""
    support: int
    """Number of images of this class."""
    precision: float | None
    """Fraction of the images predicted as this class that belong to it."""
    recall: float | None
    """Fraction of the images of this class that are predicted as this class."""
    f1: float | None
    """Harmonic mean of precision and recall."""


@dataclass(frozen=True)
class Mistake:
    """An image whose predicted class is wrong."""

    image: int
    """Index of the image in the data."""
    answer: str
    """Name of the predicted class."""
    truth: str
    """Name of the true class."""
    probability: float
    """Probability of the predicted class."""
    file: str | None = None
    """Path of the image, if it comes from a file."""


def confusion_counts(
    data: LabelledImages, predictions: Predictions, classes: int
) -> Int[np.ndarray, "truth predicted"]:
    """Count the images by their true and their predicted class.

    Args:
        data: The images and their labels.
        predictions: The predictions for these images.
        classes: Number of classes.

    Returns:
        The confusion matrix: rows are true classes, columns predicted ones. Images without an answer are in no column.
    """
    labels, predicted = data.labels.numpy(), predictions.classes.numpy()
    return np.asarray(confusion_matrix(labels, predicted, labels=np.arange(classes)))


def metrics_by_class(
    data: LabelledImages, predictions: Predictions, class_names: Sequence[str]
) -> tuple[ClassMetrics, ...]:
    """Compute precision, recall and F1 of each class.

    Args:
        data: The images and their labels.
        predictions: The predictions for these images.
        class_names: Names of all classes, including those without an image.

    Returns:
        One entry per class, in the order of ``class_names``.
    """
    precision, recall, f1, support = precision_recall_fscore_support(
        data.labels.numpy(), predictions.classes.numpy(), labels=np.arange(len(class_names)), zero_division=np.nan
    )
    return tuple(
        ClassMetrics(name, int(images), *(None if math.isnan(value) else float(value) for value in values))
        for name, images, *values in zip(class_names, support, precision, recall, f1, strict=True)
    )


def confident_mistakes(
    data: LabelledImages,
    predictions: Predictions,
    class_names: Sequence[str],
    files: Sequence[str] | None = None,
    at_most: int = 12,
) -> tuple[Mistake, ...]:
    """Return the wrong predictions with the highest probabilities.

    Args:
        data: The images and their labels.
        predictions: The predictions for these images.
        class_names: Names of all classes.
        files: Paths of the images, if they come from files.
        at_most: Largest number of mistakes to return.

    Returns:
        The mistakes, the most confident first.
    """
    wrong = (predictions.classes != data.labels).nonzero().flatten().tolist()
    most_confident = sorted(wrong, key=lambda image: (-float(predictions.confidence[image]), image))[:at_most]
    return tuple(
        Mistake(
            image,
            names_of_answers(class_names)[int(predictions.classes[image])],
            class_names[int(data.labels[image])],
            float(predictions.confidence[image]),
            None if files is None else files[image],
        )
        for image in most_confident
    )
