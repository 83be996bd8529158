"""Integer pixels to [0, 1]: the value that stands for white."""

from collections.abc import Sequence

import numpy as np

WIDE = (1, 255, 65535)
"""Possible values of white in integers of 32 and 64 bits: they hold masks, or images of 8 or 16 bits."""
CURE = "divide them to [0, 1], or save them as uint8 or uint16"
"""Remedy for pixels outside the supported range, as the end of an error message."""


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
