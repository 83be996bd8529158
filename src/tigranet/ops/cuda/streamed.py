"""The statistics and the convolution on grids of any size and for any order: one launch per step (``streamed.cu``)."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tigranet.ops.cuda import nvrtc
from tigranet.ops.cuda.grid_constants import grid_macros, inverse_root_degree
from tigranet.ops.cuda.launch_plan import Block, LaunchPlan
from tigranet.ops.cuda.limits import SMALLEST_LIMITS
from tigranet.ops.cuda.sources import read_source
from tigranet.ops.fallback import KernelUnavailableError
from tigranet.ops.grid_spec import GridSpec

WORKSPACE_BYTES = 2**28
"""Approximate size of the memory for intermediate maps. As many maps as fit are processed at once, at least one."""
MAX_BLOCKS_Z = 65_535
"""Number of blocks along the third axis of a launch. If there are more maps, a block processes several."""
ROWS, WARPS = 8, 8
"""Rows per thread, and warps above one another in a block that covers rows and columns."""
THREADS = 256
"""Threads of a block that covers nodes regardless of rows and columns."""
WARP = 32
MAX_SIGNALS_IN_REGISTERS = 32
"""Number of signals up to which weighted sums keep them in registers."""
MAX_LEVEL_REGISTERS, MAX_NODES_PER_THREAD = 64, 8
"""Numbers that a thread of the scalar products keeps in registers, and the nodes that it processes."""

STEP_PLAN = LaunchPlan((WARP, WARPS, 1), (), static_shared_memory=WARPS * 8)
COMBINE_PLAN = LaunchPlan((THREADS, 1, 1), ())
"""How the kernels of a step, and of weighted sums, are launched for every size."""


def statistics(z: Tensor, order: int, grid: GridSpec) -> Tensor:
    """Compute mean and variance of the Chebyshev polynomials of each map.

    Term k overwrites term k - 2. The moments of the blocks are merged at the end, in float64.

    Args:
        z: Maps, (batch, maps, nodes), zero where a node is not active.
        order: The highest order.
        grid: The grid.

    Returns:
        (batch, maps * (order + 1) * 2): map after map, order after order, mean and variance.
    """
    maps, nodes = z.contiguous().flatten(0, 1), z.shape[-1]
    counts = _counts(grid, z.device)
    parts = z.new_empty(order + 1, len(maps), len(counts), 2, dtype=torch.float64)
    for chunk in _chunks(len(maps), 2 * nodes * z.itemsize):
        before = t = maps[chunk]
        _step(grid, t, t, t, 0, 0, parts[0, chunk])
        for k in range(1, order + 1):
            new = torch.empty_like(t) if k <= 2 else before  # the input must not be overwritten
            _step(grid, t, before, new, min(k, 2), 0 if k == 1 else -1, parts[k, chunk])
            before, t = t, new
    means, squares = parts.unbind(-1)
    mean = (means * (counts / nodes)).sum(-1, keepdim=True)
    variance = ((squares + counts * (means - mean) ** 2) / nodes).sum(-1)
    phi = torch.stack((mean.squeeze(-1), variance), dim=-1)
    return phi.transpose(0, 1).reshape(z.shape[0], z.shape[1] * 2 * (order + 1)).to(z.dtype)


def statistics_backward(g: Tensor, phi: Tensor, z: Tensor, order: int, noise: float, grid: GridSpec) -> Tensor:
    """Compute the gradient of the statistics by the maps.

    The recurrence runs again and keeps all terms; then its adjoint runs, in which term k overwrites term k + 2.

    Args:
        g: Gradient by the statistics, contiguous.
        phi: The statistics, contiguous.
        z: Maps, (batch, maps, nodes), zero where a node is not active.
        order: The highest order.
        noise: Magnitudes below this fraction of the map's largest get gradient 0.
        grid: The grid.

    Returns:
        The gradient, (batch, maps, nodes).
    """
    maps, nodes = z.contiguous().flatten(0, 1), z.shape[-1]
    g_z = torch.zeros_like(maps)
    g, phi = (tensor.reshape(len(maps), order + 1, 2) for tensor in (g, phi))
    kernel = _prepare("streamed_adjoint_step", grid, z.dtype, z.device)
    root = inverse_root_degree(grid, z.dtype, z.device)
    for chunk in _chunks(len(maps), (order + 2) * nodes * z.itemsize):
        t = [maps[chunk]]
        for k in range(1, order + 1):
            t.append(torch.empty_like(t[0]))
            _step(grid, t[k - 1], t[max(k - 2, 0)], t[k], min(k, 2), 0 if k == 1 else -1)
        thresholds = noise * t[0].abs().amax(-1)
        result, other = g_z[chunk], torch.zeros_like(t[0])
        b, next_b = (other, result) if order % 2 == 0 else (result, other)  # so that the last one is the result
        for k in range(order, -1, -1):
            args: list[Any] = [b, next_b, t[k], thresholds, phi[chunk], g[chunk]]
            args += [root, grid.height, grid.width, len(t[0]), 2 if k else 1, k, order]
            _launch(kernel, (*_blocks(grid), len(t[0])), STEP_PLAN.block, args)
            b, next_b = next_b, b
    return g_z.reshape(z.shape)


def convolution(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, grid: GridSpec) -> Tensor:
    """Mix the maps of each image and filter the mixture.

    Args:
        y: Maps, (batch, inputs, nodes).
        alpha: Coefficients of the filters, (outputs, degree + 1).
        beta: Weights of the mixture.
        omega: Nodes to keep, a mask (batch, 1, nodes). None for all.
        grid: The grid.

    Returns:
        The filtered maps, (batch, outputs, nodes).
    """
    z = y.new_empty(y.shape[0], len(alpha), y.shape[2])
    y = y.contiguous()
    for chunk in _chunks(len(y), alpha.shape[1] * y.shape[2] * y.itemsize):
        mask = None if omega is None else omega[chunk].contiguous()
        _combine(alpha, _powers(y[chunk], alpha.shape[1], beta, grid), z[chunk], mask, levels=True)
    return z


def convolution_backward(
    g: Tensor, y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, needs_y: bool, grid: GridSpec
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of the convolution.

    With c_m = sum_i alpha_im g_i, the gradient by the mixed map is c_0 + L (c_1 + L (c_2 + ...)).

    Args:
        g: Gradient by the filtered maps, (batch, outputs, nodes).
        y: Maps, (batch, inputs, nodes).
        alpha: Coefficients of the filters, (outputs, degree + 1).
        beta: Weights of the mixture.
        omega: Nodes to keep, a mask (batch, 1, nodes). None for all.
        needs_y: Whether the gradient by ``y`` is needed.
        grid: The grid.

    Returns:
        The gradients by ``y`` (with batch size 0 if it is not needed), ``alpha`` and ``beta``.
    """
    y = y.contiguous()
    g_y = y.new_empty(y.shape if needs_y else (0, *y.shape[1:]))
    g_alpha, g_beta = (torch.zeros_like(tensor, dtype=torch.float64) for tensor in (alpha, beta))
    for chunk in _chunks(len(y), (2 * alpha.shape[1] + len(alpha)) * y.shape[2] * y.itemsize):
        upstream = g[chunk].contiguous() if omega is None else g[chunk] * omega[chunk]
        powers = _powers(y[chunk], alpha.shape[1], beta, grid)
        g_alpha += _dots(upstream, powers)
        local = torch.empty_like(powers)
        _combine(alpha.T.contiguous(), upstream, local, None)
        for m in range(alpha.shape[1] - 2, -1, -1):
            _step(grid, local[m + 1], local[m + 1], powers[0], 1, 1)
            local[m] += powers[0]
        g_beta += _dots(y[chunk], local[:1]).squeeze(-1)
        if needs_y:
            torch.mul(local[0].unsqueeze(1), beta.unsqueeze(-1), out=g_y[chunk])
    return g_y, g_alpha.to(y.dtype), g_beta.to(y.dtype)


def _powers(y: Tensor, count: int, beta: Tensor, grid: GridSpec) -> Tensor:
    """Compute the powers of L of the mixed maps, (powers, images, nodes)."""
    powers = y.new_empty(count, y.shape[0], y.shape[2])
    _combine(beta.unsqueeze(0), y, powers[:1], None)
    for m in range(1, count):
        _step(grid, powers[m - 1], powers[m - 1], powers[m], 1, 1)
    return powers


def _step(
    grid: GridSpec, v: Tensor, previous: Tensor, result: Tensor, factor: int, sign: int, parts: Tensor | None = None
) -> None:
    """Compute result = factor * (L - I) v + sign * previous and, with ``parts``, the moments of each block."""
    args: list[Any] = [v, previous, result, inverse_root_degree(grid, v.dtype, v.device), v if parts is None else parts]
    args += [grid.height, grid.width, len(v), factor, sign, int(parts is not None)]
    kernel = _prepare("streamed_step", grid, v.dtype, v.device)
    _launch(kernel, (*_blocks(grid), len(v)), STEP_PLAN.block, args)


def _combine(weights: Tensor, signals: Tensor, results: Tensor, mask: Tensor | None, levels: bool = False) -> None:
    """Compute the sums of weights[o, j] * signals[j], from images to levels or, with ``levels``, to images."""
    outputs, count = weights.shape
    items, nodes = results.shape[0 if levels else 1], results.shape[-1]
    in_registers = int(outputs > 1 and count <= MAX_SIGNALS_IN_REGISTERS)
    macros = (("SIGNALS", count), ("SIGNALS_IN_REGISTERS", in_registers))
    kernel = _prepare("streamed_combine", None, signals.dtype, signals.device, macros)
    strides = [1, items, outputs, 1] if levels else [count, 1, 1, items]
    args = [signals, weights.contiguous(), signals if mask is None else mask, results, nodes, items, outputs]
    args += [*strides, int(mask is not None)]
    _launch(kernel, (-(-nodes // THREADS), 1, items), COMBINE_PLAN.block, args)


def dots_plan(levels: int, itemsize: int) -> LaunchPlan:
    """Plan the launch of the scalar products of signals with the powers of a map.

    Args:
        levels: Number of powers.
        itemsize: Bytes per number, 4 or 8.

    Returns:
        The plan. It fits every GPU unless there are hundreds of powers.
    """
    items = max(1, min(MAX_NODES_PER_THREAD, MAX_LEVEL_REGISTERS // levels))
    macros = (("LEVELS", levels), ("ITEMS", items))
    return LaunchPlan((THREADS, 1, 1), macros, static_shared_memory=THREADS // WARP * levels * itemsize)


def _dots(signals: Tensor, levels: Tensor) -> Tensor:
    """Compute scalar products of signals (images, signals, nodes) and levels (levels, images, nodes)."""
    images, count, nodes = signals.shape
    plan = dots_plan(len(levels), signals.itemsize)
    if (reason := plan.why_too_large(SMALLEST_LIMITS, f"a filter with {len(levels)} coefficients")) is not None:
        raise KernelUnavailableError(reason)
    kernel = _prepare("streamed_dots", None, signals.dtype, signals.device, plan.macros)
    pieces = -(-nodes // (THREADS * dict(plan.macros)["ITEMS"]))
    parts = signals.new_empty(images, pieces, count, len(levels), dtype=torch.float64)
    _launch(kernel, (pieces, 1, images), plan.block, [signals, levels, parts, nodes, images, count])
    return parts.sum((0, 1))


@lru_cache(maxsize=256)
def _prepare(
    name: str,
    grid: GridSpec | None,
    dtype: torch.dtype,
    device: torch.device,
    macros: tuple[tuple[str, int], ...] = (),
) -> nvrtc.Kernel:
    """Load a kernel. The source has four, and the macros that only the others need get any value."""
    values = grid_macros(grid or GridSpec(3, 3, 8, False, 1.0), dtype)
    values |= {"SIGNALS": 1, "SIGNALS_IN_REGISTERS": 0, "LEVELS": 1, "ITEMS": 1}
    values |= {"ROWS": ROWS, "WARPS": WARPS, "THREADS": THREADS} | dict(macros)
    return nvrtc.kernel(name, read_source("streamed"), tuple(values.items()), 0, True, device)


def _launch(kernel: nvrtc.Kernel, blocks: Block, block: Block, args: list[Any]) -> None:
    nvrtc.launch(kernel, (*blocks[:2], min(blocks[2], MAX_BLOCKS_Z)), block, args, args[0].device)


def _blocks(grid: GridSpec) -> tuple[int, int]:
    """Return the number of blocks that cover a grid, across and down."""
    return -(-grid.width // WARP), -(-grid.height // (WARPS * ROWS))


@lru_cache(maxsize=64)
def _counts(grid: GridSpec, device: torch.device) -> Tensor:
    """Return the number of nodes of each block, in the order of the blocks."""
    across, down = _blocks(grid)
    rows_per_block = WARPS * ROWS
    with torch.inference_mode(False):
        rows = (grid.height - rows_per_block * torch.arange(down, dtype=torch.float64)).clamp(max=rows_per_block)
        columns = (grid.width - WARP * torch.arange(across, dtype=torch.float64)).clamp(max=WARP)
        return torch.outer(rows, columns).flatten().to(device)


def _chunks(items: int, bytes_each: int) -> Iterator[slice]:
    """Yield chunks of as many items as fit in ``WORKSPACE_BYTES``, at least one."""
    size = max(1, WORKSPACE_BYTES // bytes_each)
    return (slice(first, min(first + size, items)) for first in range(0, items, size))
