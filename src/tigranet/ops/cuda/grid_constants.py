"""What the kernels know of a grid: macros that are compiled in, and the scale of its Laplacian."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tigranet.ops.grid_spec import GridSpec


def real_type(dtype: torch.dtype) -> str:
    """Name a floating-point type in C++.

    Args:
        dtype: ``torch.float32`` or ``torch.float64``.

    Returns:
        ``"float"`` or ``"double"``.
    """
    return "float" if dtype == torch.float32 else "double"


def grid_macros(grid: GridSpec, dtype: torch.dtype) -> dict[str, Any]:
    """Return the macros that describe a grid, except for its size.

    Args:
        grid: The grid.
        dtype: Type of the maps.

    Returns:
        Names and values.
    """
    laplacian = grid.laplacian
    return {
        "REAL": real_type(dtype),
        "EIGHT": int(grid.neighbours == 8),
        "UNIFORM": int(grid.diagonal == 1),
        "DIAGONAL": repr(grid.diagonal),
        "WRAP_ROWS": int(laplacian.wraps_rows),
        "WRAP_COLUMNS": int(laplacian.wraps_columns),
    }


@lru_cache(maxsize=64)
def inverse_root_degree(grid: GridSpec, dtype: torch.dtype, device: torch.device) -> Tensor:
    r"""Return :math:`D^{-1/2}` of a grid, where D holds the degrees of the nodes.

    Args:
        grid: The grid.
        dtype: Type of the numbers.
        device: Where they are stored.

    Returns:
        One number per node, (height, width).
    """
    with torch.inference_mode(False):
        return grid.laplacian.inverse_sqrt_degree.to(dtype=dtype, device=device, copy=True)
