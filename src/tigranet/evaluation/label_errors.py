r"""Find labels that are probably wrong, by confident learning.

Given probabilities p of each image from a classifier that was not fitted to that image, let

.. math:: t_j = \min (\operatorname{mean} \{p_j(x) : x \text{ has the label } j\}, 0.9)

be how sure the classifier usually is of class j. An image with the label i belongs confidently to class j if
:math:`p_j \ge t_j`, and j is the most probable of all such classes. If :math:`j \ne i`, its label is suspicious. The
threshold of each class follows from the data, so a class that the classifier confuses often is not accused of having
many wrong labels. (Northcutt et al., Confident Learning, JAIR 2021. The limit of 0.9 is ours: a classifier that is
nearly always right has thresholds near 1, and would find only every second wrong label.)
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

MAX_THRESHOLD = 0.9
"""Largest probability that an image needs to belong confidently to a class."""
ROUNDING = 1e-9
"""A probability that is less than a threshold by no more than this counts as equal to it."""


class LabelErrors(NamedTuple):
    """What confident learning says about each label."""

    is_suspicious: Bool[Tensor, " images"]
    """Whether the image belongs confidently to another class."""
    suggested: Int[Tensor, " images"]
    """The most probable other class."""
    score: Float[Tensor, " images"]
    """Probability of that class minus probability of the given label, from -1 to 1."""


def find_label_errors(probabilities: Float[Tensor, "images classes"], labels: Int[Tensor, " images"]) -> LabelErrors:
    """Find labels that are probably wrong.

    Args:
        probabilities: Probabilities of the classes, from a classifier that was not fitted to the image.
        labels: The given labels. Every class has at least one image, and there are at least two classes.

    Returns:
        For each image, whether its label is suspicious, a better label, and a score to rank them.

    Example:
        >>> probabilities = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8], [0.95, 0.05]])
        >>> find_label_errors(probabilities, torch.tensor([0, 0, 1, 1, 1])).is_suspicious.tolist()
        [False, False, False, False, True]
    """
    num_classes = probabilities.shape[1]
    label_probability = probabilities.gather(1, labels[:, None]).squeeze(1)
    counts = labels.bincount(minlength=num_classes)
    thresholds = label_probability.new_zeros(num_classes).index_add(0, labels, label_probability) / counts
    thresholds = thresholds.clamp(max=MAX_THRESHOLD)
    confident = torch.where(probabilities >= thresholds - ROUNDING, probabilities, -1.0)
    highest, confident_class = confident.max(1)
    others = probabilities.scatter(1, labels[:, None], -1.0)
    other, suggested = others.max(1)
    is_suspicious = (highest >= 0) & (confident_class != labels)
    return LabelErrors(is_suspicious, torch.where(is_suspicious, confident_class, suggested), other - label_probability)
