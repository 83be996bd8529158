"""A grid as the kernels read it."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from tigranet.graphs.grid import GridLaplacian

Grid = tuple[int, int, int, bool, float]
"""Height, width, neighbours, torus or free, weight of the diagonal edges: what an operator is told of a grid."""

SHARED = 40 * 1024
"""Bytes of shared memory that hold an image, at most: of larger ones the powers do not stay in registers."""

MOST_THREADS = 1024
"""Of a block on a GPU: each column of a map in strips has one at least."""


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


class Held(NamedTuple):
    """How the GPU holds a map in registers, see ``cuda_source.py``."""

    columns: int
    groups: int
    rows: int
    warps: int
    maps: int
    blocks: int


@lru_cache(maxsize=256)
def over_warps(height: int, width: int, itemsize: int, backward: bool) -> Held | None:
    """For the GPU: how a map is held in registers, the cheapest way; None if it is too large."""
    found = min(_ways(height, width, itemsize // 4, backward), default=None, key=lambda way: way[0])
    return found and found[1]


def _ways(height: int, width: int, wide: int, backward: bool) -> Iterator[tuple[float, Held]]:
    """Those that fit, each after its cost: instructions of the nodes, of the shuffles and of the ends of columns; and
    the more, the fewer warps there is room for, the more registers spill, and the less evenly the warps share out among
    the four parts of a multiprocessor, each with 512 registers a lane. The numbers were fitted to times on an H200.

    A node takes two numbers forward; four, and bits, backward. Several bands in each of several warps were slow.
    """
    for columns in range(1, min(width, 8) + 1):
        across = -(-width // columns)
        for groups in range(1, 32 // across + 1):
            for warps in range(1, 33) if groups == 1 else (1,):
                rows = -(-height // (groups * warps))
                nodes = rows * columns
                taken = nodes * (4 * wide + 2) + 90 if backward else (2 * nodes + 8 * columns) * wide + 40
                blocks = 4 * (512 // min(taken, 255)) // warps
                shared = warps * 4 * columns * 32 * 4 * wide  # bytes
                empty = -(-height // rows) != groups * warps  # a band would be
                if empty or taken > (310 if backward else 250) or not blocks or shared > 30_000:
                    continue
                cost = nodes + 5 * columns if backward else 7 * nodes + 2.4 * rows + 20 * columns + 34
                cost *= warps * (1 + 3 / (blocks * warps))
                if backward:
                    cost *= (1.3 if taken > 255 else 1) * (1.2 if warps > 2 and warps % 4 else 1)
                maps = 2 if warps == 1 and taken <= 128 else 1
                yield cost, Held(columns, groups, rows, warps, maps, 1 if warps == 1 else min(blocks, 16))


def in_shared(height: int, width: int, itemsize: int) -> bool:
    """For the GPU: whether an image with its border is held in shared memory, and its powers in registers."""
    return (height + 2) * (width + 2) * itemsize <= SHARED
