"""The statistics and the convolution on NVIDIA GPUs for grids of any size and for any order: a launch a step."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tigranet.ops import nvrtc
from tigranet.ops.grid_spec import Grid
from tigranet.ops.streamed_source import BAND, STREAMED, TALL, THREADS

MEMORY = 2**28
"""Bytes to work in, about: maps are taken as many at a time as fit, one at least."""
MOST = 65_535
"""Blocks along the third axis of a launch, at most; a block takes every so manieth map."""


def statistics(z: Tensor, order: int, grid: Grid) -> Tensor:
    """t_k is written over t_{k-2}; what the blocks found of mean and variance is merged at the end, in float64."""
    maps, nodes = z.contiguous().flatten(0, 1), z.shape[-1]
    counts = _counts(grid, z.device)
    parts = z.new_empty(order + 1, len(maps), len(counts), 2, dtype=torch.float64)
    for some in _chunks(len(maps), 2 * nodes * z.itemsize):
        before = t = maps[some]
        _step(grid, t, t, t, 0, 0, parts[0, some])
        for k in range(1, order + 1):
            new = torch.empty_like(t) if k <= 2 else before  # what is given is not written over
            _step(grid, t, before, new, min(k, 2), 0 if k == 1 else -1, parts[k, some])
            before, t = t, new
    means, squares = parts.unbind(-1)
    mean = (means * (counts / nodes)).sum(-1, keepdim=True)
    variance = ((squares + counts * (means - mean) ** 2) / nodes).sum(-1)
    phi = torch.stack((mean.squeeze(-1), variance), dim=-1)
    return phi.transpose(0, 1).reshape(z.shape[0], z.shape[1] * 2 * (order + 1)).to(z.dtype)


def statistics_backward(g: Tensor, phi: Tensor, z: Tensor, order: int, rounding: float, grid: Grid) -> Tensor:
    """The recursion again, this time kept, and then its adjoint, in which b_k is written over b_{k+2}."""
    maps, nodes = z.contiguous().flatten(0, 1), z.shape[-1]
    g_z = torch.zeros_like(maps)
    g, phi = (tensor.reshape(len(maps), order + 1, 2) for tensor in (g, phi))
    kernel = _kernel("streamed_pull", grid, z.dtype, z.device)
    for some in _chunks(len(maps), (order + 2) * nodes * z.itemsize):
        t = [maps[some]]
        for k in range(1, order + 1):
            t.append(torch.empty_like(t[0]))
            _step(grid, t[k - 1], t[max(k - 2, 0)], t[k], min(k, 2), 0 if k == 1 else -1)
        noise = rounding * t[0].abs().amax(-1)
        answer, other = g_z[some], torch.zeros_like(t[0])
        b, older = (other, answer) if order % 2 == 0 else (answer, other)  # so that the last is the answer
        for k in range(order, -1, -1):
            args: list[Any] = [b, older, t[k], noise, phi[some], g[some], nvrtc.root(grid, z.dtype, z.device)]
            args += [*grid[:2], len(t[0]), 2 if k else 1, k, order]
            _launch(kernel, (*_blocks(grid), len(t[0])), (32, TALL, 1), args)
            b, older = older, b
    return g_z.reshape(z.shape)


def convolution(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, grid: Grid) -> Tensor:
    z = y.new_empty(y.shape[0], len(alpha), y.shape[2])
    y = y.contiguous()
    for some in _chunks(len(y), alpha.shape[1] * y.shape[2] * y.itemsize):
        mask = None if omega is None else omega[some].contiguous()
        _combine(alpha, _powers(y[some], alpha.shape[1], beta, grid), z[some], mask, levels=True)
    return z


def convolution_backward(
    g: Tensor, y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, wanted: bool, grid: Grid
) -> tuple[Tensor, Tensor, Tensor]:
    """With c_m = sum_i alpha_im g_i the gradient by the mixed map is c_0 + L (c_1 + L (c_2 + ...))."""
    y = y.contiguous()
    g_y = y.new_empty(y.shape if wanted else (0, *y.shape[1:]))
    g_alpha, g_beta = (torch.zeros_like(tensor, dtype=torch.float64) for tensor in (alpha, beta))
    for some in _chunks(len(y), (2 * alpha.shape[1] + len(alpha)) * y.shape[2] * y.itemsize):
        upstream = g[some].contiguous() if omega is None else g[some] * omega[some]
        powers = _powers(y[some], alpha.shape[1], beta, grid)
        g_alpha += _dots(upstream, powers)
        local = torch.empty_like(powers)
        _combine(alpha.T.contiguous(), upstream, local, None)
        for m in range(alpha.shape[1] - 2, -1, -1):
            _step(grid, local[m + 1], local[m + 1], powers[0], 1, 1)
            local[m] += powers[0]
        g_beta += _dots(y[some], local[:1]).squeeze(-1)
        if wanted:
            torch.mul(local[0].unsqueeze(1), beta.unsqueeze(-1), out=g_y[some])
    return g_y, g_alpha.to(y.dtype), g_beta.to(y.dtype)


def _powers(y: Tensor, count: int, beta: Tensor, grid: Grid) -> Tensor:
    """L^m of the mixed maps, (powers, images, nodes)."""
    powers = y.new_empty(count, y.shape[0], y.shape[2])
    _combine(beta.unsqueeze(0), y, powers[:1], None)
    for m in range(1, count):
        _step(grid, powers[m - 1], powers[m - 1], powers[m], 1, 1)
    return powers


def _step(
    grid: Grid, v: Tensor, before: Tensor, new: Tensor, factor: int, sign: int, parts: Tensor | None = None
) -> None:
    """new = factor * shifted(v) + sign * before; and the moments of every block of it, if there are ``parts``."""
    args: list[Any] = [v, before, new, nvrtc.root(grid, v.dtype, v.device), v if parts is None else parts]
    args += [*grid[:2], len(v), factor, sign, int(parts is not None)]
    _launch(_kernel("streamed_step", grid, v.dtype, v.device), (*_blocks(grid), len(v)), (32, TALL, 1), args)


def _combine(weights: Tensor, signals: Tensor, answers: Tensor, mask: Tensor | None, levels: bool = False) -> None:
    """The sums of weights[o, j] * signals[j]: from images to levels, or from ``levels`` to images, image by image."""
    outputs, count = weights.shape
    items, nodes = answers.shape[0 if levels else 1], answers.shape[-1]
    held = int(outputs > 1 and count <= 32)
    kernel = _kernel("streamed_combine", None, signals.dtype, signals.device, SIGNALS=count, HELD=held)
    strides = [1, items, outputs, 1] if levels else [count, 1, 1, items]
    args = [signals, weights.contiguous(), signals if mask is None else mask, answers, nodes, items, outputs]
    _launch(kernel, (-(-nodes // THREADS), 1, items), (THREADS, 1, 1), [*args, *strides, int(mask is not None)])


def _dots(signals: Tensor, levels: Tensor) -> Tensor:
    """The products of signals (images, signals, nodes) and levels (levels, images, nodes), summed over the rest."""
    items, count, nodes = signals.shape
    each = max(1, min(8, 64 // len(levels)))
    kernel = _kernel("streamed_dots", None, signals.dtype, signals.device, LEVELS=len(levels), ITEMS=each)
    pieces = -(-nodes // (THREADS * each))
    parts = signals.new_empty(items, pieces, count, len(levels), dtype=torch.float64)
    _launch(kernel, (pieces, 1, items), (THREADS, 1, 1), [signals, levels, parts, nodes, items, count])
    return parts.sum((0, 1))


@lru_cache(maxsize=256)
def _kernel(name: str, grid: Grid | None, dtype: torch.dtype, device: torch.device, **macros: int) -> Any:
    """Compiled for one use: what the others have as macros is any number."""
    described = nvrtc.grid_macros(grid or (3, 3, 8, False, 1.0), dtype)
    described |= {"SIGNALS": 1, "HELD": 0, "LEVELS": 1, "ITEMS": 1, "BAND": BAND, "TALL": TALL, "THREADS": THREADS}
    return nvrtc.kernel(name, STREAMED, tuple((described | macros).items()), 0, True, device)


def _launch(kernel: Any, blocks: nvrtc.Three, block: nvrtc.Three, args: list[Any]) -> None:
    nvrtc.launch(kernel, (*blocks[:2], min(blocks[2], MOST)), block, args, args[0].device)


def _blocks(grid: Grid) -> tuple[int, int]:
    return -(-grid[1] // 32), -(-grid[0] // (TALL * BAND))


@lru_cache(maxsize=64)
def _counts(grid: Grid, device: torch.device) -> Tensor:
    """Nodes of every block, in the order of the blocks."""
    across, down = _blocks(grid)
    with torch.inference_mode(False):
        rows = (grid[0] - TALL * BAND * torch.arange(down, dtype=torch.float64)).clamp(max=TALL * BAND)
        columns = (grid[1] - 32 * torch.arange(across, dtype=torch.float64)).clamp(max=32)
        return torch.outer(rows, columns).flatten().to(device)


def _chunks(items: int, bytes_each: int) -> Iterator[slice]:
    """As many items at a time as take no more than ``MEMORY``, one at least."""
    some = max(1, MEMORY // bytes_each)
    return (slice(first, min(first + some, items)) for first in range(0, items, some))
