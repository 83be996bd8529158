"""Split conformal prediction: sets of labels that contain the true label with a chosen probability."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

SCORE_DECIMALS = 6
"""Scores are rounded to this many decimals, so that scores that are equal up to rounding errors are equal."""
MAX_SCORES = 100_000
"""Largest number of scores that are kept. Of more images a random part is kept, which is as valid a sample."""


def check_coverage(coverage: float) -> float:
    """Check that a number can be the probability with which a label set contains the true label.

    Args:
        coverage: The number.

    Returns:
        The same number.

    Raises:
        ValueError: If it is not between 0 and 1, both excluded.
        TypeError: If it is not a number.
    """
    if isinstance(coverage, bool) or not isinstance(coverage, float | int):
        raise TypeError(f"expected coverage to be a number between 0 and 1, got {coverage!r}")
    if not 0 < coverage < 1:
        raise ValueError(f"expected coverage to be between 0 and 1, such as 0.95, got {coverage}")
    return coverage


def required_images(coverage: float) -> int:
    r"""Return the smallest number of calibration images with which label sets can leave out any label.

    The rank :math:`\lceil (n + 1) c \rceil` of :meth:`ConformalCalibration.threshold` is at most n if and only if
    :math:`n \ge c / (1 - c)`.

    Args:
        coverage: The coverage c.

    Returns:
        The number of images.

    Example:
        >>> required_images(0.9), required_images(0.95), required_images(0.99)
        (9, 19, 99)
    """
    share = Fraction(str(check_coverage(coverage)))
    return ceil(share / (1 - share))


def conformal_scores(logits: Float[Tensor, "count classes"]) -> Float[Tensor, "count classes"]:
    r"""Return how poorly each class fits each image: minus the logarithm of its probability.

    .. math:: s(x, y) = -\ln p_y(x) = \ln \sum_j e^{z_j(x)} - z_y(x)

    Thresholds on s give the same label sets as thresholds on :math:`1 - p_y`, which have the smallest mean size among
    all label sets of the same coverage if the probabilities are right (Sadinle, Lei & Wasserman, "Least ambiguous
    set-valued classifiers with bounded error levels", 2019). The logarithm keeps different scores apart where
    probabilities are close to 0 or 1.

    Args:
        logits: The logits z.

    Returns:
        The scores in double precision on the CPU, rounded to :data:`SCORE_DECIMALS` decimals. They are infinite for an
        image with a logit that is NaN or infinite.

    Example:
        >>> conformal_scores(torch.tensor([[0.0, 0.0], [50.0, 0.0]])).tolist()
        [[0.693147, 0.693147], [0.0, 50.0]]
    """
    logits = logits.detach().cpu().double()
    scores = torch.round(-logits.log_softmax(1), decimals=SCORE_DECIMALS) + 0.0  # the sum turns -0.0 into 0.0
    return scores.where(logits.isfinite().all(1, keepdim=True), inf)


@dataclass(frozen=True)
class ConformalCalibration:
    r"""The scores of the true labels of n calibration images, which the network was not trained on.

    Let :math:`s_1, \dots, s_n` be these scores, and q the k-th smallest of them with :math:`k = \lceil (n + 1) c
    \rceil`, or :math:`q = \infty` if k > n. The label set of an image x is

    .. math:: C(x) = \{y : s(x, y) \le q\} \cup \{y : s(x, y) = \min_j s(x, j)\} .

    If x with its label y is exchangeable with the calibration images, then the rank of s(x, y) among the n + 1 scores
    is uniformly distributed where scores differ, and

    .. math:: P(y \in C(x)) \ge P(s(x, y) \le q) \ge k / (n + 1) \ge c .

    This holds for every n, every network and every distribution of images. Without the second part of C, the
    probability is also at most :math:`c + 1/(n+1)` if scores do not coincide. The second part, the most probable label,
    prevents empty sets: for a network whose accuracy is higher than c, the sets are single labels, and the coverage
    is the accuracy.

    Args:
        images: The number n of calibration images.
        scores: The scores of their true labels, in any order. Images without a finite score are left out here, and
            count as images with infinite scores.

    Raises:
        ValueError: If there are more scores than images.

    Example:
        >>> calibration = ConformalCalibration(9, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9))
        >>> calibration.threshold(0.8), calibration.threshold(0.95)
        (0.8, inf)
        >>> calibration.label_sets(torch.tensor([[2.0, 0.0, 1.95]]), 0.8).tolist()
        [[True, False, True]]
    """

    images: int
    scores: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.scores) > self.images:
            raise ValueError(f"expected at most one score per image, got {len(self.scores)} for {self.images} images")
        object.__setattr__(self, "scores", tuple(sorted(self.scores)))

    @classmethod
    def measure(cls, logits: Float[Tensor, "count classes"], labels: Int[Tensor, " count"]) -> "ConformalCalibration":
        """Compute the scores of the true labels of calibration images.

        Args:
            logits: The logits of images that the network was not trained on.
            labels: Their labels.

        Returns:
            The scores; of more than :data:`MAX_SCORES` images, those of a random part.
        """
        scores = conformal_scores(logits).gather(1, labels.cpu()[:, None]).squeeze(1)
        if len(scores) > MAX_SCORES:
            scores = scores[torch.randperm(len(scores), generator=torch.Generator().manual_seed(0))[:MAX_SCORES]]
        return cls(len(scores), tuple(scores[scores.isfinite()].tolist()))

    def threshold(self, coverage: float) -> float:
        r"""Return the largest score q of the labels in a label set.

        The rank :math:`\lceil (n + 1) c \rceil` is computed with the decimal number that ``coverage`` is written as:
        in floating point, 100 * 0.07 is more than 7.

        Args:
            coverage: The coverage c.

        Returns:
            The threshold; infinity if there are too few images, see :func:`required_images`.

        Raises:
            ValueError: If ``coverage`` is not between 0 and 1.
        """
        rank = ceil((self.images + 1) * Fraction(str(check_coverage(coverage))))
        return self.scores[rank - 1] if rank <= len(self.scores) else inf

    def label_sets(self, logits: Float[Tensor, "count classes"], coverage: float) -> Bool[Tensor, "count classes"]:
        """Return the label sets of images.

        Args:
            logits: The logits of the images. For sets that are identical for an image and its quarter turns, compute
                them from :func:`~tigranet.canonical_rotation.canonical_rotation`.
            coverage: The probability with which a set contains the true label.

        Returns:
            For each image and class, whether the class is in the set. The set of an image with a logit that is NaN or
            infinite is empty, or has all classes if there are too few calibration images.

        Raises:
            ValueError: If ``coverage`` is not between 0 and 1.
        """
        scores = conformal_scores(logits)
        is_most_probable = (scores == scores.amin(1, keepdim=True)) & scores.isfinite()
        return (scores <= self.threshold(coverage)) | is_most_probable

    def notice(self, coverage: float) -> str | None:
        """Return what a user must know about label sets of this coverage.

        Args:
            coverage: The coverage.

        Returns:
            A sentence if there are too few calibration images, otherwise None.
        """
        if self.threshold(coverage) < inf:
            return None
        images = f"{self.images} image{'' if self.images == 1 else 's'}"
        needed = required_images(coverage)
        if self.images < needed:
            reason = f"coverage {coverage} needs at least {needed} validation images, the model was calibrated on"
            return f"{reason} {images}: every label set contains all classes"
        return (
            f"the network gives no finite answer for {self.images - len(self.scores)} of {images} that it was "
            f"calibrated on: at coverage {coverage} every label set contains all classes"
        )
