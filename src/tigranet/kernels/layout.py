"""A grid as the kernels read it."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from tigranet.graphs.grid import GridLaplacian

Grid = tuple[int, int, int, bool, float]
"""Height, width, neighbours, torus or free, weight of the diagonal edges: what an operator is told of a grid."""

WORKING = 50
"""Registers of a thread beside those that hold nodes of a map, about."""
SHARED = 40 * 1024
"""Bytes of shared memory that hold an image, at most: of larger ones the powers do not stay in registers."""


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


def over_warps(height: int, width: int, itemsize: int, backward: bool) -> dict[str, int] | None:
    """For the GPU: how a map is held in registers, as columns a lane and rows a warp; None if it is too large.

    A node takes two numbers forward; four, and bits, backward.
    """
    columns = -(-width // 32)
    numbers = columns * (4 if backward else 2)
    wide = itemsize // 4
    for held in (64 if not backward else 56 if columns == 1 else 40, 80, 104):  # where an H200 is fastest, then others
        warps = -(-height // max(1, held // numbers))
        rows = -(-height // warps)
        warps = -(-height // rows)
        maps = 4 if warps == 1 else 1
        taken = rows * (wide * numbers + columns * backward) + WORKING
        blocks = 65_536 // (32 * warps * maps * taken)  # the registers of a multiprocessor over those of a block
        borders = warps * 4 * columns * 32 * itemsize  # bytes of shared memory
        if warps <= 32 and blocks and taken < 255 and borders <= 30_000:
            blocks = 1 if warps == 1 else min(blocks, 16)
            return {"COLUMNS": columns, "ROWS": rows, "WARPS": warps, "MAPS": maps, "BLOCKS": blocks}
    return None


def in_shared(height: int, width: int, itemsize: int) -> bool:
    """For the GPU: whether an image with its border is held in shared memory, and its powers in registers."""
    return (height + 2) * (width + 2) * itemsize <= SHARED
