"""How many test images an accuracy of a given precision needs."""

import math

from tigranet.evaluation.accuracy_interval import Z_95


def images_for_width(accuracy: float, width: float) -> int:
    r"""Return how many test images a 95 % interval of a given width needs.

    Squaring the width of :func:`~tigranet.evaluation.accuracy_interval.accuracy_interval`,
    :math:`w (1 + z^2/n) = 2 z \sqrt{p (1 - p) / n + z^2 / 4n^2}`, gives a quadratic equation in n,
    :math:`w^2 n^2 + (2 w^2 z^2 - 4 z^2 p (1 - p)) n + (w^2 - 1) z^4 = 0`, with one positive solution.

    Args:
        accuracy: The accuracy p that is expected, in per cent.
        width: The width w of the interval, in percentage points.

    Returns:
        The number of images, rounded up.

    Raises:
        ValueError: If ``accuracy`` is not a percentage, or ``width`` not between 0 and 100.

    Example:
        >>> images_for_width(95.0, 5.0)
        304
    """
    if not 0 <= accuracy <= 100 or not 0 < width < 100:
        raise ValueError(f"expected an accuracy from 0 to 100 and a width between 0 and 100, got {accuracy}, {width}")
    share, w, z2 = accuracy / 100, width / 100, Z_95**2
    linear = 2 * w**2 * z2 - 4 * z2 * share * (1 - share)
    discriminant = linear**2 + 4 * w**2 * (1 - w**2) * z2**2
    return math.ceil((math.sqrt(discriminant) - linear) / (2 * w**2))
