"""The three operations on NVIDIA GPUs: CUDA C++ compiled at run time for the size of the grid, by PyTorch's own NVRTC.

CUDA C++ because the statistics want a map to stay in registers with neighbours by shuffle, with every loop unrolled.
The same statistics at 26 x 26 took 1.4 times as long in numba-cuda on an H200 and 6.0 times in Triton, which offers no
shuffles (``python -m benchmarks.languages``, ``results/benchmarks-cuda.csv``). NVRTC comes with PyTorch, so a user
needs no compiler. What was compiled is kept on disk for the next process.

A map that fits in registers, and an image that fits in shared memory, stay there for all orders (``cuda_source.py``);
others are streamed, a launch an order (``streamed.py``).
"""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tigranet.ops import nvrtc, streamed
from tigranet.ops.convolution import convolution, convolution_backward
from tigranet.ops.cuda_source import CONVOLUTION, POOLING, STATISTICS
from tigranet.ops.grid_spec import Grid, Held, in_shared, over_warps
from tigranet.ops.pooling import pooling
from tigranet.ops.statistics import statistics, statistics_backward

MOST_ORDERS = 31
"""Orders of which two bits each, and those of order 0, are held in one number."""


@statistics.register_kernel("cuda")
def cuda_statistics(z: Tensor, active: Tensor | None, order: int, rounding: int, *description: Any) -> Tensor:
    grid: Any = description
    held = over_warps(grid[0], grid[1], z.itemsize, False)
    if order > MOST_ORDERS or held is None:
        return streamed.statistics(z if active is None else z * active, order, grid)
    items = z.shape[0] * z.shape[1]
    phi = z.new_empty(z.shape[0], z.shape[1] * 2 * (order + 1))
    z = z.contiguous()
    mask = z if active is None else active.contiguous()
    kernel, block = _statistics_kernel("statistics", z.dtype, active is not None, order, grid, held, z.device)
    args = [z, mask, nvrtc.root(grid, z.dtype, z.device), phi, items]
    nvrtc.launch(kernel, (-(-items // held.maps), 1, 1), block, args, z.device)
    return phi


@statistics_backward.register_kernel("cuda")
def cuda_statistics_backward(
    g: Tensor, phi: Tensor, z: Tensor, active: Tensor | None, order: int, rounding: int, *description: Any
) -> Tensor:
    grid: Any = description
    noise = rounding * torch.finfo(z.dtype).eps
    held = over_warps(grid[0], grid[1], z.itemsize, True)
    if order > MOST_ORDERS or held is None:
        product = z if active is None else z * active
        g_z = streamed.statistics_backward(g.contiguous(), phi.contiguous(), product, order, noise, grid)
        return g_z if active is None else g_z.mul_(active)
    items = z.shape[0] * z.shape[1]
    z, g, phi = z.contiguous(), g.contiguous(), phi.contiguous()
    mask = z if active is None else active.contiguous()
    g_z = torch.empty_like(z)
    masked, device = active is not None, z.device
    kernel, block = _statistics_kernel("statistics_backward", z.dtype, masked, order, grid, held, device)
    args = [z, mask, nvrtc.root(grid, z.dtype, z.device), phi, g, g_z, noise, items]
    nvrtc.launch(kernel, (-(-items // held.maps), 1, 1), block, args, z.device)
    return g_z


@lru_cache(maxsize=256)
def _statistics_kernel(
    name: str, dtype: torch.dtype, masked: bool, order: int, grid: Grid, held: Held, device: torch.device
) -> tuple[Any, nvrtc.Three]:
    """The kernel, and the threads of a block."""
    backward = name.endswith("backward")
    macros = {"H": grid[0], "W": grid[1]} | nvrtc.grid_macros(grid, dtype)
    macros |= {measure.upper(): value for measure, value in held._asdict().items()}
    macros |= {"ORDER": order, "MASKED": int(masked), "BACKWARD": int(backward)}
    return nvrtc.kernel(name, STATISTICS, tuple(macros.items()), 0, backward, device), (32, held.warps * held.maps, 1)


@convolution.register_kernel("cuda")
def cuda_convolution(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, *description: Any) -> Tensor:
    grid: Any = description
    if not in_shared(grid[0], grid[1], y.itemsize):
        return streamed.convolution(y, alpha, beta, omega, grid)
    y, alpha, beta = y.contiguous(), alpha.contiguous(), beta.contiguous()
    z = y.new_empty(y.shape[0], alpha.shape[0], y.shape[2])
    mask = y if omega is None else omega.contiguous()
    kernel, threads, shared = _convolution_kernel(
        "convolution", y.dtype, y.shape[1], (*alpha.shape,), omega is not None, False, grid, y.device
    )
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
    kernel, threads, shared = _convolution_kernel(
        "convolution_backward", y.dtype, y.shape[1], (*alpha.shape,), omega is not None, wanted, grid, y.device
    )
    args = [g, y, alpha, beta, mask, nvrtc.root(grid, y.dtype, y.device), g_y, g_alpha, g_beta]
    nvrtc.launch(kernel, (len(y), 1, 1), (threads, 1, 1), args, y.device, shared)
    return g_y, g_alpha.sum(0), g_beta.sum(0)


@lru_cache(maxsize=256)
def _convolution_kernel(
    name: str,
    dtype: torch.dtype,
    inputs: int,
    filters: tuple[int, int],
    masked: bool,
    wanted: bool,
    grid: Grid,
    device: torch.device,
) -> tuple[Any, int, int]:
    """The kernel, the threads of a block, and the bytes of shared memory."""
    nodes = grid[0] * grid[1]
    backward = name.endswith("backward")
    threads = min(1024, max(128, 32 * -(-nodes // 96)))
    outputs, coefficients = filters
    shared = (grid[0] + 2) * (grid[1] + 2)
    if backward:
        shared += threads // 32 * max(outputs * coefficients, inputs)
    macros = nvrtc.grid_macros(grid, dtype) | {
        "H": grid[0],
        "W": grid[1],
        "INPUTS": inputs,
        "OUTPUTS": outputs,
        "DEGREE": coefficients - 1,
        "MASKED": int(masked),
        "WANTED": int(wanted),
        "BACKWARD": int(backward),
        "THREADS": threads,
        "ITEMS": -(-nodes // threads),
    }
    shared *= dtype.itemsize
    return nvrtc.kernel(name, CONVOLUTION, tuple(macros.items()), shared, not backward, device), threads, shared


@pooling.register_kernel("cuda")
def cuda_pooling(z: Tensor, omega: Tensor | None, num_active: int, strict: bool, tolerance: float) -> Tensor:
    nodes, items = z.shape[2], z.shape[0] * z.shape[1]
    z = z.contiguous()
    mask = z if omega is None else omega.contiguous()
    active = torch.empty_like(z, dtype=torch.bool)
    kernel, warps, maps = _pooling_kernel(z.dtype, nodes, omega is not None, strict, z.device)
    args = [z, mask, active, z.shape[1], min(num_active, nodes), float(tolerance), items]
    nvrtc.launch(kernel, (-(-items // maps), 1, 1), (32, warps * maps, 1), args, z.device)
    return active


@lru_cache(maxsize=256)
def _pooling_kernel(
    dtype: torch.dtype, nodes: int, masked: bool, strict: bool, device: torch.device
) -> tuple[Any, int, int]:
    """The kernel, the warps of a map, and the maps of a block."""
    warps = min(32, -(-nodes // (32 * 24)))
    items = -(-nodes // (32 * warps))
    maps = 4 if warps == 1 else 1
    macros = {
        "REAL": "float" if dtype == torch.float32 else "double",
        "BITS": "unsigned" if dtype == torch.float32 else "unsigned long long",
        "H": 1,
        "W": nodes,
        "WARPS": warps,
        "MAPS": maps,
        "ITEMS": items,
        "HELD": int(items * (dtype.itemsize // 4) <= 48),
        "MASKED": int(masked),
        "STRICT": int(strict),
    }
    return nvrtc.kernel("pooling", POOLING, tuple(macros.items()), 0, True, device), warps, maps
