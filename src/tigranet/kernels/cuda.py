"""The three operations on NVIDIA GPUs: CUDA C++ compiled at run time for the size of the grid, by PyTorch's own NVRTC.

CUDA C++ because the statistics want a map to stay in registers with neighbours by shuffle, with every loop unrolled:
Triton offers no shuffles, and numba-cuda no say in what is unrolled (neither was timed here). NVRTC comes with PyTorch,
so a user needs no compiler. What was compiled is kept on disk for the next process.
"""

from typing import Any

import torch
from torch import Tensor

from tigranet.kernels import nvrtc, streamed
from tigranet.kernels.convolution import convolution, convolution_backward
from tigranet.kernels.cuda_source import CONVOLUTION, POOLING, STATISTICS
from tigranet.kernels.layout import Grid, in_shared, over_warps
from tigranet.kernels.pooling import pooling
from tigranet.kernels.statistics import statistics, statistics_backward

MOST_ORDERS = 31
"""Orders of which two bits each, and those of order 0, are held in one number."""


@statistics.register_kernel("cuda")
def cuda_statistics(z: Tensor, active: Tensor | None, order: int, rounding: int, *description: Any) -> Tensor:
    grid: Any = description
    if order > MOST_ORDERS or over_warps(grid[0], grid[1], z.itemsize, False) is None:
        return streamed.statistics(z if active is None else z * active, order, grid)
    items = z.shape[0] * z.shape[1]
    phi = z.new_empty(z.shape[0], z.shape[1] * 2 * (order + 1))
    z = z.contiguous()
    mask = z if active is None else active.contiguous()
    kernel, block, maps = _statistics_kernel("statistics", z, active, order, grid)
    args = [z, mask, nvrtc.root(grid, z.dtype, z.device), phi, items]
    nvrtc.launch(kernel, (-(-items // maps), 1, 1), block, args, z.device)
    return phi


@statistics_backward.register_kernel("cuda")
def cuda_statistics_backward(
    g: Tensor, phi: Tensor, z: Tensor, active: Tensor | None, order: int, rounding: int, *description: Any
) -> Tensor:
    grid: Any = description
    noise = rounding * torch.finfo(z.dtype).eps
    if order > MOST_ORDERS or over_warps(grid[0], grid[1], z.itemsize, True) is None:
        masked = z if active is None else z * active
        g_z = streamed.statistics_backward(g.contiguous(), phi.contiguous(), masked, order, noise, grid)
        return g_z if active is None else g_z.mul_(active)
    items = z.shape[0] * z.shape[1]
    z, g, phi = z.contiguous(), g.contiguous(), phi.contiguous()
    mask = z if active is None else active.contiguous()
    g_z = torch.empty_like(z)
    kernel, block, maps = _statistics_kernel("statistics_backward", z, active, order, grid)
    args = [z, mask, nvrtc.root(grid, z.dtype, z.device), phi, g, g_z, noise, items]
    nvrtc.launch(kernel, (-(-items // maps), 1, 1), block, args, z.device)
    return g_z


def _statistics_kernel(name: str, z: Tensor, active: Tensor | None, order: int, grid: Grid) -> tuple[Any, Any, int]:
    backward = name.endswith("backward")
    measures = over_warps(grid[0], grid[1], z.itemsize, backward)
    assert measures is not None
    macros = {"H": grid[0], "W": grid[1]} | nvrtc.grid_macros(grid, z.dtype) | measures
    macros |= {"ORDER": order, "MASKED": int(active is not None), "BACKWARD": int(backward)}
    kernel = nvrtc.kernel(name, STATISTICS, tuple(macros.items()), 0, backward, z.device.index)
    return kernel, (32, measures["WARPS"] * measures["MAPS"], 1), measures["MAPS"]


@convolution.register_kernel("cuda")
def cuda_convolution(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, *description: Any) -> Tensor:
    grid: Any = description
    if not in_shared(grid[0], grid[1], y.itemsize):
        return streamed.convolution(y, alpha, beta, omega, grid)
    y, alpha, beta = y.contiguous(), alpha.contiguous(), beta.contiguous()
    z = y.new_empty(y.shape[0], alpha.shape[0], y.shape[2])
    mask = y if omega is None else omega.contiguous()
    kernel, threads, shared = _convolution_kernel("convolution", y, alpha, omega, False, grid)
    args = [y, alpha, beta, mask, nvrtc.root(grid, y.dtype, y.device), z]
    nvrtc.launch(kernel, (len(y), 1, 1), (threads, 1, 1), args, y.device, shared)
    return z


@convolution_backward.register_kernel("cuda")
def cuda_convolution_backward(
    g: Tensor, y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, wanted: bool, *description: Any
) -> tuple[Tensor, Tensor, Tensor]:
    grid: Any = description
    if not in_shared(grid[0], grid[1], y.itemsize):
        return streamed.convolution_backward(g, y, alpha, beta, omega, wanted, grid)
    g, y, alpha, beta = g.contiguous(), y.contiguous(), alpha.contiguous(), beta.contiguous()
    mask = y if omega is None else omega.contiguous()
    g_y = y.new_empty(y.shape if wanted else (0, *y.shape[1:]))
    g_alpha, g_beta = y.new_empty(len(y), *alpha.shape), y.new_empty(len(y), *beta.shape)
    kernel, threads, shared = _convolution_kernel("convolution_backward", y, alpha, omega, wanted, grid)
    args = [g, y, alpha, beta, mask, nvrtc.root(grid, y.dtype, y.device), g_y, g_alpha, g_beta]
    nvrtc.launch(kernel, (len(y), 1, 1), (threads, 1, 1), args, y.device, shared)
    return g_y, g_alpha.sum(0), g_beta.sum(0)


def _convolution_kernel(
    name: str, y: Tensor, alpha: Tensor, omega: Tensor | None, wanted: bool, grid: Grid
) -> tuple[Any, int, int]:
    nodes = grid[0] * grid[1]
    backward = name.endswith("backward")
    threads = min(1024, max(128, 32 * -(-nodes // 96)))
    outputs, coefficients = alpha.shape
    shared = (grid[0] + 2) * (grid[1] + 2)
    if backward:
        shared += threads // 32 * max(outputs * coefficients, y.shape[1])
    macros = nvrtc.grid_macros(grid, y.dtype) | {
        "H": grid[0],
        "W": grid[1],
        "INPUTS": y.shape[1],
        "OUTPUTS": outputs,
        "DEGREE": coefficients - 1,
        "MASKED": int(omega is not None),
        "WANTED": int(wanted),
        "BACKWARD": int(backward),
        "THREADS": threads,
        "ITEMS": -(-nodes // threads),
    }
    shared *= y.itemsize
    return nvrtc.kernel(name, CONVOLUTION, tuple(macros.items()), shared, not backward, y.device.index), threads, shared


@pooling.register_kernel("cuda")
def cuda_pooling(z: Tensor, omega: Tensor | None, num_active: int, strict: bool, tolerance: float) -> Tensor:
    nodes = z.shape[2]
    z = z.contiguous()
    mask = z if omega is None else omega.contiguous()
    active = torch.empty_like(z, dtype=torch.bool)
    warps = min(32, -(-nodes // (32 * 24)))
    items = -(-nodes // (32 * warps))
    maps = 4 if warps == 1 else 1
    held = items * (z.itemsize // 4) <= 48
    macros = {
        "REAL": "float" if z.dtype == torch.float32 else "double",
        "BITS": "unsigned" if z.dtype == torch.float32 else "unsigned long long",
        "H": 1,
        "W": nodes,
        "WARPS": warps,
        "MAPS": maps,
        "ITEMS": items,
        "HELD": int(held),
        "MASKED": int(omega is not None),
        "STRICT": int(strict),
    }
    kernel = nvrtc.kernel("pooling", POOLING, tuple(macros.items()), 0, True, z.device.index)
    count = z.shape[0] * z.shape[1]
    args = [z, mask, active, z.shape[1], min(num_active, nodes), float(tolerance), count]
    nvrtc.launch(kernel, (-(-count // maps), 1, 1), (32, warps * maps, 1), args, z.device)
    return active
