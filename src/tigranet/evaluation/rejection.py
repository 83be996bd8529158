"""Coverage against accuracy: what is gained if only answers above a probability are given."""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

LEVELS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Probabilities that a reader chooses among."""
CURVE_LEVELS = (*(step / 50 for step in range(50)), 0.99, 0.995, 0.999, 1.0)
"""Probabilities of a curve: steps of 0.02, and smaller ones near 1, where most answers are."""


@dataclass(frozen=True)
class RejectionLevel:
    """The answers whose probability is at least a given one."""

    probability: float
    """Smallest probability of an answer that is given, as for ``predict --reject``."""
    images: int
    """Number of all images."""
    answered: int
    """Number of images with such an answer."""
    right: int
    """Number of these answers that are right."""

    @property
    def coverage(self) -> float:
        """Fraction of the images that are answered."""
        return self.answered / self.images

    @property
    def accuracy(self) -> float | None:
        """Fraction of the answers that are right; None if nothing is answered."""
        return self.right / self.answered if self.answered else None


def rejection_levels(
    confidence: Float[Tensor, " count"], is_correct: Bool[Tensor, " count"], levels: Sequence[float] = LEVELS
) -> tuple[RejectionLevel, ...]:
    """Count the answers at or above each of several probabilities, and how many of them are right.

    Args:
        confidence: Probability of the answer of each image, at least one.
        is_correct: Whether the answer is right.
        levels: The probabilities.

    Returns:
        One entry per level.

    Raises:
        ValueError: If there are no images.

    Example:
        >>> import torch
        >>> confidence, is_correct = torch.tensor([0.4, 0.95, 0.99]), torch.tensor([False, True, True])
        >>> [(level.coverage, level.accuracy) for level in rejection_levels(confidence, is_correct, (0.95, 1.0))]
        [(0.6666666666666666, 1.0), (0.0, None)]
    """
    if not len(confidence):
        raise ValueError("expected at least one answer to reject, got none")

    def level(probability: float) -> RejectionLevel:
        is_answered = confidence >= probability
        return RejectionLevel(
            probability, len(confidence), int(is_answered.sum()), int((is_answered & is_correct).sum())
        )

    return tuple(level(probability) for probability in levels)
