"""The score up to which images count as known, from the scores of validation images."""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, median, stdev

MIN_SCORES = 2
"""Smallest number of validation images that tell how much scores vary."""
MAX_SCORES = 10_000
"""Largest number of scores that are kept."""
SMALLEST_DISTANCE = 1e-9
"""Smallest distance of the limit from the median, for validation images that all have the same score."""


def check_share(share: float) -> float:
    """Check that a number can be the share of known images to accept.

    Args:
        share: The number.

    Returns:
        The same number.

    Raises:
        ValueError: If it is not between 0 and 1, both excluded.
        TypeError: If it is not a number.
    """
    if isinstance(share, bool) or not isinstance(share, float | int):
        raise TypeError(f"expected the share of known images to accept to be a number between 0 and 1, got {share!r}")
    if not 0 < share < 1:
        raise ValueError(f"expected the share of known images to accept to be between 0 and 1, got {share}")
    return share


@dataclass(frozen=True)
class KnownScores:
    r"""The scores of n validation images of known classes, which the network was not trained on.

    The limit for a share c of images to accept is the k-th smallest score with :math:`k = \lceil (n + 1) c \rceil`. A
    new image of a known class, exchangeable with the validation images, has a score of at most this limit with a
    probability of at least c, whatever the distribution of the scores is.

    If k > n, there are too few images for this. The limit is then that of a normal distribution: with the mean m and
    the standard deviation s of the scores and the quantile t of Student's distribution with n - 1 degrees of freedom,

    .. math:: m + t_{n-1}(c)\, s \sqrt{1 + 1/n} ,

    but at least the largest score. The share is then approximate.

    Args:
        scores: The scores, in any order.

    Raises:
        ValueError: If there are fewer than :data:`MIN_SCORES` scores, or if one is not finite.

    Example:
        >>> known = KnownScores(tuple(float(score) for score in range(1, 20)))
        >>> known.limit(0.95), known.limit(0.5), known.limit(0.99) > 19
        (19.0, 10.0, True)
    """

    scores: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.scores) < MIN_SCORES:
            raise ValueError(f"expected the scores of at least {MIN_SCORES} validation images, got {len(self.scores)}")
        if not all(map(math.isfinite, self.scores)):
            raise ValueError("expected finite scores")
        object.__setattr__(self, "scores", tuple(sorted(self.scores)))

    @property
    def typical(self) -> float:
        """The median of the scores."""
        return median(self.scores)

    def limit(self, share: float) -> float:
        """Return the score up to which an image counts as known.

        Args:
            share: The share of known images to accept.

        Returns:
            The limit.

        Raises:
            ValueError: If ``share`` is not between 0 and 1.
        """
        count = len(self.scores)
        rank = math.ceil((count + 1) * Fraction(str(check_share(share))))
        if rank <= count:
            return self.scores[rank - 1]
        from scipy.special import stdtrit  # slow to import

        deviations = float(stdtrit(count - 1, share)) * math.sqrt(1 + 1 / count)
        return max(self.scores[-1], fmean(self.scores) + deviations * stdev(self.scores))

    def scale(self, share: float) -> tuple[float, float]:
        """Return the scale on which the median is 0 and the limit is 1.

        Args:
            share: The share of known images to accept.

        Returns:
            The origin and the unit of the scale. For shares below one half, whose limit is not above the median, the
            origin is the smallest score.

        Raises:
            ValueError: If ``share`` is not between 0 and 1.
        """
        limit = self.limit(share)
        origin = self.typical if limit > self.typical else self.scores[0]
        unit = max(limit - origin, SMALLEST_DISTANCE)
        return limit - unit, unit

    def notice(self, share: float) -> str | None:
        """Return what a user must know about the share of known images that are accepted.

        Args:
            share: The share that was asked for.

        Returns:
            A sentence if there are too few validation images to guarantee it, otherwise None.
        """
        exact = Fraction(str(check_share(share)))
        needed = math.ceil(exact / (1 - exact))
        if len(self.scores) >= needed:
            return None
        return (
            f"about {100 * share:g} % of the images of known classes are accepted: to guarantee it, the detector of "
            f"unknown images needs at least {needed} validation images, it has {len(self.scores)}"
        )
