r"""How far an accuracy may be from the truth because it was measured on few images: Wilson's confidence interval.

Of n images that were drawn at random, a share p is classified correctly. With z = 1.96, the interval

.. math:: \frac{p + \frac{z^2}{2n} \pm z \sqrt{\frac{p (1 - p)}{n} + \frac{z^2}{4 n^2}}}{1 + \frac{z^2}{n}}

contains the accuracy on all images of this kind in about 95 % of such measurements. Unlike the interval
:math:`p \pm z \sqrt{p (1 - p) / n}`, it stays within [0, 1], and it has a width if all images are classified correctly.
"""

import math
from typing import Any, NamedTuple

Z_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


class AccuracyInterval(NamedTuple):
    """A 95 % confidence interval of an accuracy, in per cent."""

    low: float
    """Lower limit."""
    high: float
    """Upper limit."""
    images: int
    """Number of images that the accuracy was measured on."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values.

        Returns:
            The limits, rounded to 4 decimals, the number of images and the level.
        """
        return {"low": round(self.low, 4), "high": round(self.high, 4), "images": self.images, "level": 0.95}

    def __str__(self) -> str:
        kind = "test image" if self.images == 1 else "test images"
        return f"95 % interval {self.low:.1f} to {self.high:.1f} from {self.images:,} {kind}"


def accuracy_interval(accuracy: float, images: int) -> AccuracyInterval:
    """Return the interval of an accuracy.

    For images that are moved several times, n is the number of different images: the draws of one image are not
    independent.

    Args:
        accuracy: The measured accuracy in per cent.
        images: Number of different images that it was measured on, at least one.

    Returns:
        The interval.

    Raises:
        ValueError: If there are no images, or if the accuracy is not a percentage.

    Example:
        >>> print(accuracy_interval(92.0, 300))
        95 % interval 88.4 to 94.6 from 300 test images
    """
    if images < 1:
        raise ValueError(f"expected an accuracy that was measured on at least 1 image, got {images} images")
    if not 0 <= accuracy <= 100:
        raise ValueError(f"expected an accuracy in per cent, from 0 to 100, got {accuracy}")
    p, n = accuracy / 100, images
    scale = 1 + Z_95**2 / n
    centre = (p + Z_95**2 / (2 * n)) / scale
    half_width = Z_95 * math.sqrt(p * (1 - p) / n + Z_95**2 / (4 * n**2)) / scale
    # Rounding errors must not exclude the measured accuracy itself.
    low = 0.0 if p == 0 else 100 * max(0.0, centre - half_width)
    high = 100.0 if p == 1 else 100 * min(1.0, centre + half_width)
    return AccuracyInterval(low, high, n)
