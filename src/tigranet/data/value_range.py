"""Pixels to [0, 1]: the integer that stands for white, and floating-point numbers that are not in this range."""

from collections.abc import Sequence

import numpy as np

WIDE = (1, 255, 65535)
"""Possible values of white in integers of 32 and 64 bits: they hold masks, or images of 8 or 16 bits."""
CURE = "divide them to [0, 1], or save them as uint8 or uint16"
"""Remedy for pixels outside the supported range, as the end of an error message."""
OVERSHOOT = 0.25
"""By how much interpolated images may exceed [0, 1] without a warning."""


class ValueRangeWarning(UserWarning):
    """Images whose values are probably not in the range that the network expects."""


def full_scale(kind: np.dtype, lowest: int, largest: int, wide: Sequence[int] = WIDE) -> int:
    """Return the value by which integer pixels are divided to bring them to [0, 1].

    For 8 and 16 bits it is the largest value of the type. Wider types do not tell the range of their values, so for
    them it is the first of ``wide`` that is at least as large as the largest pixel.

    Args:
        kind: Integer type of the pixels.
        lowest: Smallest pixel.
        largest: Largest pixel.
        wide: Candidates for types of more than 16 bits, in increasing order.

    Returns:
        The pixel value that stands for white.

    Raises:
        ValueError: If pixels of a wide type are negative or larger than all of ``wide``. The message does not name
            the file or array; the caller puts it in front.

    Example:
        >>> byte, long = np.dtype(np.uint8), np.dtype(np.int64)
        >>> full_scale(byte, 0, 9), full_scale(long, 0, 9), full_scale(long, 0, 9, (65535,))
        (255, 255, 65535)
    """
    if kind.itemsize <= 2:
        return int(np.iinfo(kind).max)
    for limit in wide:
        if lowest >= 0 and largest <= limit:
            return limit
    raise ValueError(
        f"holds integers of {8 * kind.itemsize} bits from {lowest} to {largest}, expected 0 to {wide[-1]}: {CURE}"
    )


def outside_unit_range(pixels: np.ndarray) -> str | None:
    """Describe floating-point pixels that lie clearly outside [0, 1].

    Args:
        pixels: An array of numbers.

    Returns:
        The range as text, such as ``0 to 255``. None for integers, and for floating-point numbers that exceed [0, 1] by
        at most :data:`OVERSHOOT`, as interpolated images do.

    Example:
        >>> outside_unit_range(np.array([0.0, 255.0])), outside_unit_range(np.array([-0.1, 1.0]))
        ('0 to 255', None)
    """
    if pixels.dtype.kind != "f" or not pixels.size:
        return None
    lowest, largest = float(pixels.min()), float(pixels.max())
    if lowest >= -OVERSHOOT and largest <= 1 + OVERSHOOT:
        return None
    return f"{lowest:.4g} to {largest:.4g}"


def is_standardised(pixels: np.ndarray) -> bool:
    """Return whether values look standardised on purpose, rather than left at their original scale.

    Standardised values have both signs, a mean near 0 and a standard deviation near 1, also if they were standardised
    by pixel, by channel or with the moments of other images, or scaled to [-1, 1]. Original intensities, such as 0 to
    255 or Hounsfield units, do not.

    Args:
        pixels: An array of floating-point numbers.

    Returns:
        True for values of both signs with a mean of at most 1 and a standard deviation of at most 2.

    Example:
        >>> values = np.linspace(-1.7, 1.7, 50)
        >>> is_standardised(values), is_standardised(1000 * values), is_standardised(values + 1.7)
        (True, False, False)
    """
    has_both_signs = bool(pixels.min() < 0 < pixels.max())
    return has_both_signs and bool(abs(pixels.mean(dtype=np.float64)) <= 1 and pixels.std(dtype=np.float64) <= 2)
