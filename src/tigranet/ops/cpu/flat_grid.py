"""The memory layout of a map on the CPU: one flat buffer with a border."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from tigranet.ops.grid_spec import GridSpec

Layout = tuple[int, int, int, int, int, int]
"""Height, width, stride, number of neighbours, whether rows wrap around, whether columns wrap around."""


@lru_cache(maxsize=64)
def flat_grid(grid: GridSpec, dtype: torch.dtype) -> tuple[Any, Layout, Any]:
    r"""Return :math:`s = D^{-1/2}` in the flat layout, the layout, and the weight of the diagonal edges.

    Node (r, c) is entry ``(r + 1) * stride + 1 + c`` of a buffer. Between the end of a row and the start of the next
    lies one zero on the free grid. On the torus there are two entries, for the nodes across the border.

    Args:
        grid: The grid.
        dtype: The type of the numbers.

    Returns:
        The array s, which is zero on the border; the layout; and the weight, of the type of the numbers.
    """
    laplacian = grid.laplacian
    wrap_rows, wrap_columns = int(laplacian.wraps_rows), int(laplacian.wraps_columns)
    stride = grid.width + 1 + wrap_columns
    root = laplacian.inverse_sqrt_degree.to(dtype).numpy()
    s = np.zeros((grid.height + 2) * stride + 2, root.dtype)
    rows = s[1 : 1 + (grid.height + 2) * stride].reshape(grid.height + 2, stride)
    rows[1:-1, : grid.width] = root
    layout = (grid.height, grid.width, stride, grid.neighbours, wrap_rows, wrap_columns)
    return s, layout, s.dtype.type(grid.diagonal)
