"""Which pixels of an axis a coarse pixel is computed from, and with which weights."""

from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(maxsize=64)
def taps(length: int, wraps: bool) -> tuple[Any, tuple[float, float]]:
    """Return the pixels that each coarse pixel is computed from.

    Args:
        length: Number of pixels along the axis.
        wraps: Whether the axis is periodic.

    Returns:
        The four positions of each coarse position, (coarse length, 4), and the weights of the outer two and of the
        inner two.
    """
    start = np.arange(0, length, 2)[:, None]
    offsets, weights = ([-1, 0, 1, 2], (1 / 8, 3 / 8)) if length % 2 == 0 else ([-1, 0, 0, 1], (1 / 4, 1 / 4))
    positions = start + np.array(offsets)
    return positions % length if wraps else positions.clip(0, length - 1), weights


@lru_cache(maxsize=64)
def transposed_taps(length: int, wraps: bool) -> tuple[Any, Any]:
    """Return the coarse pixels that each pixel is part of.

    Args:
        length: Number of pixels along the axis.
        wraps: Whether the axis is periodic.

    Returns:
        Two coarse positions for each position, and its weights in them, both (length, 2).
    """
    positions, (outer, inner) = taps(length, wraps)
    matrix = np.zeros((length, len(positions)))
    for tap, weight in enumerate((outer, inner, inner, outer)):
        np.add.at(matrix, (positions[:, tap], np.arange(len(positions))), weight)
    coarse, weights = np.zeros((length, 2), np.int64), np.zeros((length, 2))
    for fine in range(length):
        entries = np.flatnonzero(matrix[fine])
        # A single entry is written as two halves rather than with a weight of zero, which would turn infinity into NaN.
        coarse[fine] = entries[[0, -1]]
        weights[fine] = matrix[fine, coarse[fine]] / (3 - len(entries))
    return coarse, weights
