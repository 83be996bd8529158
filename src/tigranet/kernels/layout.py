"""A grid as the kernels read it."""

from collections.abc import Iterator
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


@lru_cache(maxsize=256)
def over_warps(height: int, width: int, itemsize: int, backward: bool) -> dict[str, int] | None:
    """For the GPU: how a map is held in registers; None if it is too large. A lane has ``COLUMNS`` columns of ``ROWS``
    rows; lanes beside one another make a band of rows, of which a warp has ``GROUPS`` and a map ``GROUPS * WARPS``.

    A node takes two numbers forward; four, and bits, backward. The one with the least work is taken, as counted in
    instructions: those of the nodes, of the columns that are exchanged, and of the step.
    """
    return min(_layouts(height, width, itemsize, backward), default=(0, None), key=lambda found: found[0])[1]


def _layouts(height: int, width: int, itemsize: int, backward: bool) -> Iterator[tuple[float, dict[str, int]]]:
    """Those that fit, each after its cost."""
    wide = itemsize // 4
    for columns in range(1, min(width, 8) + 1):
        across = -(-width // columns)
        for groups in range(1, 32 // across + 1):
            for warps in range(1, 33):
                rows = -(-height // (groups * warps))
                if -(-height // rows) != groups * warps:
                    continue  # a band would be empty
                nodes = rows * columns
                taken = nodes * (wide * (4 if backward else 2) + backward) + WORKING + 6 * columns * wide
                blocks = 65_536 // (32 * warps * taken)
                if taken > 250 or not blocks or warps * 4 * columns * 32 * itemsize > 30_000:
                    continue
                exchanged = 2 * rows + 2 * columns * (groups > 1 or warps > 1)
                cost = warps * (7 * nodes + 3 * exchanged + 50 + 20 * (warps > 1))
                idle = max(1.0, 12 / (blocks * warps))  # too few warps to hide what each waits for
                maps = 4 if warps == 1 else 1
                yield (
                    cost * idle,
                    {
                        "COLUMNS": columns,
                        "GROUPS": groups,
                        "ROWS": rows,
                        "WARPS": warps,
                        "MAPS": maps,
                        "BLOCKS": 1 if warps == 1 else min(blocks, 16),
                    },
                )


def in_shared(height: int, width: int, itemsize: int) -> bool:
    """For the GPU: whether an image with its border is held in shared memory, and its powers in registers."""
    return (height + 2) * (width + 2) * itemsize <= SHARED
