"""A grid as the kernels read it."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from tigranet.graphs.grid import GridLaplacian

Grid = tuple[int, int, int, bool, float]
"""Height, width, neighbours, torus or free, weight of the diagonal edges: what an operator is told of a grid."""


def describe(laplacian: GridLaplacian) -> Grid:
    torus = laplacian.boundary == "torus"
    return laplacian.height, laplacian.width, laplacian.neighbours, torus, float(laplacian.diagonal)


@lru_cache(maxsize=64)
def grid_of(height: int, width: int, neighbours: int, torus: bool, diagonal: float) -> GridLaplacian:
    """The Laplacian that was described."""
    return GridLaplacian(height, width, 8 if neighbours == 8 else 4, "torus" if torus else "free", diagonal)


@lru_cache(maxsize=64)
def flat(grid: Grid, dtype: torch.dtype) -> tuple[Any, tuple[int, ...], Any]:
    """For the CPU: :math:`D^{-1/2}` in the flat layout, its measures, the weight of the diagonals.

    Node (r, c) is entry (r + 1) * stride + 1 + c. On the free grid one zero stands between the end of a row and the
    start of the next; on the torus two entries do, for what is across.
    """
    laplacian = grid_of(*grid)
    height, width, neighbours = grid[:3]
    wraps = int(laplacian._wrap_rows), int(laplacian._wrap_columns)
    stride = width + 1 + wraps[1]
    root = laplacian._constant.to(dtype).numpy()
    s = np.zeros((height + 2) * stride + 2, root.dtype)
    s[1 : 1 + (height + 2) * stride].reshape(height + 2, stride)[1:-1, :width] = root
    return s, (height, width, stride, neighbours, *wraps), s.dtype.type(grid[4])
