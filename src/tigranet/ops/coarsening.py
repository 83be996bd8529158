"""The coarsening's operation: half the height and width of maps on a pixel grid."""

from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.laplacian import Laplacian
from tigranet.ops.coarsening_taps import taps, transposed_taps
from tigranet.ops.cpu.arrays import as_pixel_rows
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.custom_op import CustomOp, gradients_in_new_thread
from tigranet.ops.dispatch import operation, why_unsupported
from tigranet.ops.grid_spec import GridSpec


@operation
def coarsen(y: Float[Tensor, "batch maps nodes"], laplacian: Laplacian) -> Float[Tensor, "batch maps coarse_nodes"]:
    """Move signals to the coarse version of their graph.

    Args:
        y: Signals on the graph.
        laplacian: The graph.

    Returns:
        Signals on the coarse graph, stored pixel by pixel if ``y`` is.
    """
    return laplacian.coarsening(y)


@coarsen.supported_by_kernels
def _check(y: Tensor, laplacian: Laplacian) -> str | None:
    return why_unsupported(y, laplacian=laplacian, half_on_cuda=True)


@coarsen.fused
def _fused(y: Tensor, laplacian: Any) -> Tensor:
    if not y.numel():
        return coarsen.reference(y, laplacian)
    _ = laplacian.coarsening  # raises an error if the grid is too small
    return forward(y, GridSpec.of(laplacian))


def _reference(y: Tensor, grid: GridSpec) -> Tensor:
    return coarsen.reference(y, grid.laplacian)


def _reference_backward(g: Tensor, grid: GridSpec) -> Tensor:
    y = g.new_zeros(*g.shape[:2], grid.num_nodes)
    (g_y, _) = gradients_in_new_thread(_reference, (y, grid), (True, False), g)
    assert g_y is not None
    return g_y


forward = CustomOp("coarsen", "Tensor y", "Tensor", _reference)
backward = CustomOp("coarsen_backward", "Tensor g", "Tensor", _reference_backward)


def _is_stored_by_pixel(y: Tensor) -> bool:
    """Whether all maps of a pixel are next to each other, and not all pixels of a map. The result is stored alike."""
    return bool(y.stride(1) == 1 and y.shape[1] > 1)


def _empty_like(y: Tensor, nodes: int) -> Tensor:
    """Return memory for maps of another number of nodes, stored as ``y`` is."""
    batch, maps, _ = y.shape
    if y.device.type == "cpu" and not _is_stored_by_pixel(y):
        return y.new_empty(batch, maps, nodes)
    return y.new_empty(batch, nodes, maps).transpose(1, 2)


@forward.implementation("cpu")
def _cpu(y: Tensor, grid: GridSpec) -> Tensor:
    from tigranet.ops.cpu import coarsening as kernels

    laplacian, (batch, maps, nodes) = grid.laplacian, y.shape
    if maps > 1 and not _is_stored_by_pixel(y):  # every map is an image of its own
        return _cpu(y.reshape(batch * maps, 1, nodes), grid).reshape(batch, maps, -1)
    rows, row_weights = taps(grid.height, laplacian.wraps_rows)
    columns, column_weights = taps(grid.width, laplacian.wraps_columns)
    images = as_pixel_rows(y, grid.height).reshape(batch, grid.height, -1)
    out = y.new_empty(batch, len(rows) * len(columns), maps)
    result = out.numpy().reshape(batch * len(rows), -1)
    weights = np.array(row_weights, result.dtype), np.array(column_weights, result.dtype)
    share(
        lambda first, last: kernels.coarsen(images, rows, columns, *weights, maps, first, last, result),
        len(result),
        y.numel(),
    )
    return out.transpose(1, 2)


@backward.implementation("cpu")
def _cpu_backward(g: Tensor, grid: GridSpec) -> Tensor:
    from tigranet.ops.cpu import coarsening as kernels

    laplacian, (batch, maps, nodes) = grid.laplacian, g.shape
    if maps > 1 and not _is_stored_by_pixel(g):
        return _cpu_backward(g.reshape(batch * maps, 1, nodes), grid).reshape(batch, maps, -1)
    rows, row_weights = transposed_taps(grid.height, laplacian.wraps_rows)
    columns, column_weights = transposed_taps(grid.width, laplacian.wraps_columns)
    coarse_height = -(-grid.height // 2)
    images = as_pixel_rows(g, coarse_height).reshape(batch, coarse_height, -1)
    out = g.new_empty(batch, grid.num_nodes, maps)
    result = out.numpy().reshape(batch * grid.height, -1)
    weights = row_weights.astype(result.dtype), column_weights.astype(result.dtype)
    share(
        lambda first, last: kernels.coarsen_backward(images, rows, columns, *weights, maps, first, last, result),
        len(result),
        out.numel(),
    )
    return out.transpose(1, 2)


@forward.implementation("cuda")
def _cuda(y: Tensor, grid: GridSpec) -> Tensor:
    from tigranet.ops.cuda import coarsening as kernels

    return kernels.forward(y, grid)


@backward.implementation("cuda")
def _cuda_backward(g: Tensor, grid: GridSpec) -> Tensor:
    from tigranet.ops.cuda import coarsening as kernels

    return kernels.backward(g, grid)


@forward.shapes
def _shape(y: Tensor, grid: GridSpec) -> Tensor:
    nodes = ((grid.height + 1) // 2) * ((grid.width + 1) // 2)
    return _empty_like(y, nodes)


@backward.shapes
def _shape_backward(g: Tensor, grid: GridSpec) -> Tensor:
    return _empty_like(g, grid.num_nodes)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.grid = inputs


# Coarsening is linear: the gradient of each of the two operators is the other one, to any order.
@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    return backward(g, ctx.grid), None


@backward.gradient(_save)
def _gradient_of_backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    return forward(g, ctx.grid), None
