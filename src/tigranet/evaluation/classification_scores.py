"""Scores of a classifier on classes of different sizes: accuracy, balanced accuracy and log loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import torch
import torch.nn.functional as F
from torch import nn

from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.class_report import metrics_by_class
from tigranet.evaluation.predictions import NO_ANSWER, Predictions, highest_classes, logits_of


@dataclass(frozen=True)
class ClassificationScores:
    """Scores of a network on labelled images."""

    accuracy: float
    """Percentage of the images that are classified correctly."""
    balanced_accuracy: float
    """Mean over the classes of the percentage of their images that are classified correctly. Classes without images do
    not count."""
    log_loss: float
    """Mean over the images of minus the natural logarithm of the probability of the true class."""


def classification_scores(
    module: nn.Module, data: LabelledImages, class_names: Sequence[str], batch_size: int = 256
) -> ClassificationScores:
    r"""Measure accuracy, balanced accuracy and log loss of a network.

    With recall :math:`r_c` of class c and probability :math:`p_i` that the network gives to the true class of image i,

    .. math:: \text{balanced accuracy} = \frac{1}{C} \sum_c r_c, \qquad
              \text{log loss} = -\frac{1}{n} \sum_i \ln p_i

    An image for which the network gives NaN or infinity counts as wrong, with equal probabilities for all classes.

    Args:
        module: The network, from images to logits (batch, classes).
        data: The images and their labels.
        class_names: Names of all classes.
        batch_size: Batch size.

    Returns:
        The scores.

    Raises:
        ValueError: If there are no images.
    """
    if not len(data.labels):
        raise ValueError("expected at least 1 image to measure the scores on, got 0")
    logits = logits_of(module, data.images, batch_size=batch_size).double()
    classes = highest_classes(logits)
    logits = torch.where((classes != NO_ANSWER)[:, None], logits, 0.0)
    predictions = Predictions(classes, logits.softmax(1).amax(1))
    recalls = [each.recall for each in metrics_by_class(data, predictions, class_names) if each.recall is not None]
    return ClassificationScores(
        accuracy=100 * predictions.count_correct(data) / len(data.labels),
        balanced_accuracy=100 * mean(recalls),
        log_loss=float(F.cross_entropy(logits, data.labels)),
    )
