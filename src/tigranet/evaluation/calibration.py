"""Whether probabilities are right: the expected calibration error, and the temperature that corrects it."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

NUM_BINS = 15
"""Number of intervals of equal width that confidences are grouped into."""
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.1, 10.0
"""Limits of the temperature. For a network that is right about every image, the best temperature would be 0."""
BISECTIONS = 60
"""Number of halvings of the interval of the temperature, enough for double precision."""


@dataclass(frozen=True)
class ConfidenceBin:
    """The predictions whose confidence lies in one interval."""

    count: int
    """Number of predictions."""
    confidence: float
    """Their mean confidence."""
    accuracy: float
    """The fraction of them that are correct."""


def confidence_bins(
    confidence: Float[Tensor, " count"], correct: Bool[Tensor, " count"], bins: int = NUM_BINS
) -> tuple[ConfidenceBin, ...]:
    """Group predictions by their confidence.

    Args:
        confidence: Probability of each predicted class.
        correct: Whether each prediction is correct.
        bins: Number of intervals of equal width, which together are [0, 1]. A boundary belongs to the upper one.

    Returns:
        The intervals that are not empty, by increasing confidence.

    Example:
        >>> confidence_bins(torch.tensor([0.9, 0.95, 0.4]), torch.tensor([True, False, True]), bins=2)[1].accuracy
        0.5
    """
    numbers = (confidence.double() * bins).long().clamp(0, bins - 1)
    groups = (numbers == number for number in numbers.unique())
    return tuple(
        ConfidenceBin(int(group.sum()), float(confidence[group].double().mean()), float(correct[group].double().mean()))
        for group in groups
    )


def expected_calibration_error(bins: tuple[ConfidenceBin, ...]) -> float:
    r"""Return the mean difference between confidence and accuracy, in per cent.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{n} \left| \mathrm{accuracy}_b - \mathrm{confidence}_b \right|

    Args:
        bins: The predictions, grouped by confidence.

    Returns:
        The error: 0 if in every interval the fraction of correct predictions is the mean confidence.

    Raises:
        ValueError: If there are no predictions.

    Example:
        >>> expected_calibration_error((ConfidenceBin(3, 0.75, 0.5), ConfidenceBin(1, 0.5, 0.5)))
        18.75
    """
    if not bins:
        raise ValueError("expected at least 1 prediction to measure the calibration error on, got 0")
    total = sum(group.count for group in bins)
    return 100 * sum(group.count * abs(group.accuracy - group.confidence) for group in bins) / total


def fit_temperature(logits: Float[Tensor, "count classes"], labels: Int[Tensor, " count"]) -> float:
    r"""Return the temperature T with which the probabilities softmax(z / T) of images have the lowest log loss.

    With :math:`\beta = 1 / T`, the log loss is convex in :math:`\beta`, and its derivative

    .. math:: \frac1n \sum_i \Big( \sum_j p_j(x_i) z_j(x_i) - z_{y_i}(x_i) \Big), \qquad
              p = \mathrm{softmax}(\beta z),

    grows with :math:`\beta`, so bisection finds its zero. A temperature above 1 means that the network is too
    confident. It does not change which class is the most probable.

    Args:
        logits: The logits z of images that the network was not trained on. Images with a logit that is NaN or infinite
            do not count.
        labels: Their labels.

    Returns:
        The temperature, between :data:`MIN_TEMPERATURE` and :data:`MAX_TEMPERATURE`; 1 without images, and if the
        logits of each image are equal.

    Example:
        >>> logits = torch.tensor([[4.0, 0.0]] * 4)
        >>> round(fit_temperature(logits, torch.tensor([0, 0, 0, 1])), 3)  # 4 / ln 3
        3.641
    """
    is_finite = logits.isfinite().all(1)
    z, y = logits[is_finite].detach().cpu().double(), labels[is_finite].cpu()
    if not len(z) or bool((z == z[:, :1]).all()):  # every temperature gives the same probabilities
        return 1.0
    of_true_class = z.gather(1, y[:, None]).squeeze(1)
    low, high = torch.tensor([1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE], dtype=torch.float64).log()
    for _ in range(BISECTIONS):
        beta = (low + high) / 2
        slope = (((beta.exp() * z).softmax(1) * z).sum(1) - of_true_class).mean()
        low, high = (low, beta) if slope > 0 else (beta, high)
    return float((-(low + high) / 2).exp())
