"""How the kernels of the oriented network distribute a map over the threads of a block, in strips of rows."""

from typing import NamedTuple

from tigranet.ops.cuda.launch_plan import Block
from tigranet.ops.grid_spec import GridSpec

PREFERRED_ROWS = 4
"""Rows per strip, if a block has enough threads for that."""
WARP = 32


class StripLayout(NamedTuple):
    """The threads of a block. ``strips.cu`` describes what each of them computes."""

    rows: int
    """Rows per strip."""
    block: Block
    """Threads along each axis: one per column, rounded up to whole warps, and one per strip."""


def strip_layout(grid: GridSpec, max_threads: int) -> StripLayout | str:
    """Distribute a map over the threads of a block.

    Args:
        grid: The grid.
        max_threads: Number of threads that a block may have.

    Returns:
        The layout, or the reason why there is none.
    """
    columns = WARP * -(-grid.width // WARP)
    if columns > max_threads:
        return f"a row of {grid.width} pixels needs {columns} threads, this device has {max_threads} per block"
    rows = -(-grid.height // min(-(-grid.height // PREFERRED_ROWS), max_threads // columns))
    return StripLayout(rows, (columns, -(-grid.height // rows), 1))
