"""Means and variances of maps on scales on which images of known classes have nearly normal distributions."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

FLOOR = 0.01
"""What is added to a variance before its logarithm, as a fraction of its mean over the training images."""
CONSTANT = 1e-6
"""A feature that varies by less than this fraction of its largest value counts as constant."""
TINY = 1e-30
"""Smallest divisor."""


@dataclass(frozen=True)
class LogMoments:
    r"""Standardised means and logarithms of variances.

    The statistics of a network are a mean and a variance per map and order. Variances are positive and span orders of
    magnitude: that of a blank image is 0, which is less than one standard deviation below the mean of all images. On
    the scale

    .. math:: v \mapsto \log(v / \bar v + 0.01)

    with the mean :math:`\bar v` over the training images, it is far from all images that show something. Means keep
    their scale. All numbers are then standardised. Features that are constant over the training images are set to 0.

    Args:
        mean_variances: The mean :math:`\bar v` of each variance.
        centres: The mean of each number.
        factors: The inverse standard deviation of each number, or 0 for a constant.

    Example:
        >>> moments = LogMoments.fit(torch.tensor([[0.0, 1.0], [1.0, 2.0], [2.0, 4.0]]))
        >>> moments(torch.tensor([[1.0, 0.0]]))[0, 1] < -5
        tensor(True)
    """

    mean_variances: Float[Tensor, " half"]
    centres: Float[Tensor, " features"]
    factors: Float[Tensor, " features"]

    @classmethod
    def fit(cls, statistics: Float[Tensor, "count features"]) -> "LogMoments":
        """Measure the scales on training images.

        Args:
            statistics: Their invariant features.

        Returns:
            The scales.
        """
        mean_variances = statistics[:, 1::2].double().mean(0).clamp(min=TINY)
        numbers = _logarithms(statistics, mean_variances)
        deviations = numbers.std(0, correction=0)
        is_constant = deviations <= CONSTANT * numbers.abs().amax(0) + TINY
        factors = torch.where(is_constant, 0.0, 1 / deviations.clamp(min=TINY))
        return cls(mean_variances, numbers.mean(0), factors)

    def __call__(self, statistics: Float[Tensor, "count features"]) -> Float[Tensor, "count features"]:
        """Bring the invariant features of images to these scales.

        Args:
            statistics: The features, from ``net.features``.

        Returns:
            The numbers in double precision: first all means, then the logarithms of all variances.
        """
        return (_logarithms(statistics, self.mean_variances) - self.centres) * self.factors


def _logarithms(statistics: Tensor, mean_variances: Tensor) -> Tensor:
    means, variances = statistics[:, 0::2].double(), statistics[:, 1::2].double().clamp(min=0)
    return torch.cat([means, (variances / mean_variances + FLOOR).log()], dim=1)
