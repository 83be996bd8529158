"""How the kernels of the statistics distribute a map over the registers of one or more warps."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from tigranet.ops.cuda.limits import DeviceLimits

MAX_COLUMNS = 8
MAX_WARPS = 32
MAX_HALO_BYTES = 30_000
"""Bytes of shared memory through which the warps of a map exchange rows."""
MAX_REGISTERS_FORWARD, MAX_REGISTERS_BACKWARD = 250, 310
"""Registers per lane up to which a layout is used. The hardware has 255; the backward kernel may spill some."""
REGISTERS_PER_THREAD = 255
LANES, PARTITIONS = 32, 4
"""Lanes of a warp, and independent parts of a multiprocessor, among which warps are distributed."""


class RegisterLayout(NamedTuple):
    """The distribution of a map over registers. ``statistics.cu`` describes it."""

    columns: int
    """Columns per lane."""
    bands: int
    """Bands of rows per warp."""
    rows: int
    """Rows per band."""
    warps: int
    """Warps per map."""
    maps: int
    """Maps per block. It is 1 if a map takes several warps."""
    blocks: int
    """Blocks per multiprocessor for which the compiler leaves registers."""
    registers: int
    """Estimated registers per lane, at most 255."""


@lru_cache(maxsize=256)
def register_layout(
    height: int, width: int, itemsize: int, backward: bool, limits: DeviceLimits
) -> RegisterLayout | None:
    """Choose the layout with the lowest estimated cost.

    Args:
        height: Height of the map.
        width: Width of the map.
        itemsize: Bytes per number, 4 or 8.
        backward: Whether it is for the backward kernel, which needs more registers.
        limits: Limits of the device.

    Returns:
        The layout, or None if the map does not fit in registers.
    """
    candidates = _candidates(height, width, itemsize // 4, backward, limits)
    best = min(candidates, default=None, key=lambda candidate: candidate[0])
    return best and best[1]


def _candidates(
    height: int, width: int, words: int, backward: bool, limits: DeviceLimits
) -> Iterator[tuple[float, RegisterLayout]]:
    """Yield the layouts that fit, each with its cost.

    The cost counts the instructions for the nodes, for the shuffles and for the ends of columns. It increases if few
    warps fit on a multiprocessor, if registers spill, and if the warps are distributed unevenly among the partitions of
    a multiprocessor. The constants were fitted to run times on an H200.

    A node takes two numbers forward; four numbers and its bits backward. Several bands in each of several warps were
    slow, and are left out.
    """
    registers_per_lane = limits.registers_per_block // (PARTITIONS * LANES)
    for columns in range(1, min(width, MAX_COLUMNS) + 1):
        lanes_per_row = -(-width // columns)
        for bands in range(1, LANES // lanes_per_row + 1):
            for warps in range(1, MAX_WARPS + 1) if bands == 1 else (1,):
                rows = -(-height // (bands * warps))
                nodes = rows * columns
                needed = nodes * (4 * words + 2) + 90 if backward else (2 * nodes + 8 * columns) * words + 40
                registers = min(needed, REGISTERS_PER_THREAD)
                blocks = PARTITIONS * (registers_per_lane // registers) // warps
                halo_bytes = warps * 4 * columns * LANES * 4 * words
                has_empty_band = -(-height // rows) != bands * warps
                max_needed = MAX_REGISTERS_BACKWARD if backward else MAX_REGISTERS_FORWARD
                maps = 2 if warps == 1 and needed <= 128 else 1
                too_many_threads = LANES * warps * maps > limits.threads_per_block
                if has_empty_band or needed > max_needed or not blocks or halo_bytes > MAX_HALO_BYTES:
                    continue
                if too_many_threads:
                    continue
                cost = nodes + 5 * columns if backward else 7 * nodes + 2.4 * rows + 20 * columns + 34
                cost *= warps * (1 + 3 / (blocks * warps))
                if backward:
                    cost *= (1.3 if needed > REGISTERS_PER_THREAD else 1) * (1.2 if warps > 2 and warps % 4 else 1)
                blocks = 1 if warps == 1 else min(blocks, 16)
                yield cost, RegisterLayout(columns, bands, rows, warps, maps, blocks, registers)
