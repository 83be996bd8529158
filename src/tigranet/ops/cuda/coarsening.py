"""Launch the kernels that halve the height and width of images (``coarsening.cu``)."""

from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.ops.coarsening_taps import taps, transposed_taps
from tigranet.ops.cuda import nvrtc
from tigranet.ops.cuda.pixel_packs import PixelBlocks, as_pixels, check_pixels, pack_size, pixel_kernel, real_dtype
from tigranet.ops.grid_spec import GridSpec

BLOCKS, MAX_PIXELS_PER_THREAD = 4096, 4
"""Blocks, unless each of their threads has the maximal number of pixels."""


def forward(y: Float[Tensor, "batch maps nodes"], grid: GridSpec) -> Float[Tensor, "batch maps coarse_nodes"]:
    """Halve height and width.

    Args:
        y: Maps, not empty.
        grid: The grid of the maps.

    Returns:
        The coarse maps, stored pixel by pixel.

    Raises:
        KernelUnavailableError: If the kernel cannot be compiled or launched.
    """
    values, (batch, maps, _), (height, width) = as_pixels(y), y.shape, _coarse_size(grid)
    out = values.new_empty(batch, height * width, maps)
    rows, row_weights = _taps_on(grid.height, grid.wraps_rows, y.device)
    columns, column_weights = _taps_on(grid.width, grid.wraps_columns, y.device)
    _launch("coarsen", values, [rows, columns], out, [*row_weights, *column_weights], grid)
    return out.transpose(1, 2)


def backward(g: Float[Tensor, "batch maps coarse_nodes"], grid: GridSpec) -> Float[Tensor, "batch maps nodes"]:
    """Apply the adjoint of :func:`forward`.

    Args:
        g: Gradient by the coarse maps, not empty.
        grid: The grid of the fine maps.

    Returns:
        The gradient by the fine maps, stored pixel by pixel.

    Raises:
        KernelUnavailableError: If the kernel cannot be compiled or launched.
    """
    values, (batch, maps, _) = as_pixels(g), g.shape
    out = values.new_empty(batch, grid.num_nodes, maps)
    dtype = real_dtype(g.dtype)
    rows, row_weights = _transposed_taps_on(grid.height, grid.wraps_rows, dtype, g.device)
    columns, column_weights = _transposed_taps_on(grid.width, grid.wraps_columns, dtype, g.device)
    _launch("coarsen_backward", values, [rows, columns, row_weights, column_weights], out, [], grid)
    return out.transpose(1, 2)


def _coarse_size(grid: GridSpec) -> tuple[int, int]:
    return -(-grid.height // 2), -(-grid.width // 2)


def _launch(name: str, values: Tensor, tables: list[Tensor], out: Tensor, weights: list[float], grid: GridSpec) -> None:
    batch, nodes, maps = out.shape
    pack, pixels = pack_size(maps, values, out), batch * nodes
    check_pixels(batch * grid.num_nodes)
    blocks = PixelBlocks.plan(pixels, maps // pack, 1, MAX_PIXELS_PER_THREAD, BLOCKS)
    sizes = [pixels, blocks.pixels_per_block, maps, grid.height, grid.width, *_coarse_size(grid)]
    kernel = pixel_kernel("coarsening", name, values.dtype, pack, values.device)
    args: list[Any] = [values, *tables, out, *weights, *sizes]
    nvrtc.launch(kernel, blocks.grid, blocks.block, args, values.device)


@lru_cache(maxsize=64)
def _taps_on(length: int, wraps: bool, device: torch.device) -> tuple[Tensor, tuple[float, float]]:
    positions, weights = taps(length, wraps)
    return _table(positions, torch.int32, device), weights


@lru_cache(maxsize=64)
def _transposed_taps_on(length: int, wraps: bool, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    positions, weights = transposed_taps(length, wraps)
    return _table(positions, torch.int32, device), _table(weights, dtype, device)


def _table(numbers: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Copy a table to a device, complete before any stream reads it: the type changes on the host."""
    with torch.inference_mode(False):
        return torch.from_numpy(numbers).to(dtype).to(device, copy=True)
