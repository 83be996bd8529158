"""What is white in an image of whole numbers: what they are divided by, to be in [0, 1]."""

from collections.abc import Sequence

import numpy as np

WIDE = (1, 255, 65535)
"""What whole numbers of 32 and 64 bits may be divided by: they hold masks, or images of 8 or 16 bits."""
CURE = "divide them to [0, 1], or save them as uint8 or uint16"


def full_scale(kind: np.dtype, lowest: int, largest: int, wide: Sequence[int] = WIDE) -> int:
    """Of 8 and 16 bits, the largest of their type; of more, which do not say how far they go, the first of ``wide``
    that is not below the ``largest`` there is.

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
        f"holds whole numbers of {8 * kind.itemsize} bits from {lowest} to {largest}, read are 0 to {wide[-1]}: {CURE}"
    )
