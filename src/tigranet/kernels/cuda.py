"""The three operations on NVIDIA GPUs: CUDA C++ compiled at run time for the size of the grid, by PyTorch's own NVRTC.

CUDA C++ because the statistics want a map to stay in registers with neighbours by shuffle, with every loop unrolled:
Triton offers no shuffles, and numba-cuda no say in what is unrolled (neither was timed here). NVRTC comes with PyTorch,
so a user needs no compiler. What was compiled is kept on disk for the next process.
"""

import hashlib
import os
import tempfile
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tigranet.kernels.convolution import convolution, convolution_backward
from tigranet.kernels.cuda_source import COMMON, CONVOLUTION, POOLING, STATISTICS
from tigranet.kernels.layout import Grid, grid_of, over_warps
from tigranet.kernels.pooling import pooling
from tigranet.kernels.statistics import statistics, statistics_backward

_bound = threading.local()


def _grid_macros(grid: Grid, dtype: torch.dtype) -> dict[str, Any]:
    laplacian = grid_of(*grid)
    return {
        "REAL": "float" if dtype == torch.float32 else "double",
        "H": grid[0],
        "W": grid[1],
        "EIGHT": int(grid[2] == 8),
        "UNIFORM": int(grid[4] == 1),
        "DIAGONAL": repr(grid[4]),
        "WRAP_ROWS": int(laplacian._wrap_rows),
        "WRAP_COLUMNS": int(laplacian._wrap_columns),
    }


@lru_cache(maxsize=256)
def _kernel(name: str, source: str, macros: tuple[tuple[str, Any], ...], shared: int, exact: bool, device: int) -> Any:
    """The compiled kernel on ``device``, from the folder of compiled ones if it is there."""
    from torch.cuda._utils import _cuda_load_module, _nvrtc_compile

    options = [f"-D{macro}={value}" for macro, value in macros] + ["--fmad=false"] * exact
    _bind(device)
    with torch.cuda.device(device):
        capability = "".join(map(str, torch.cuda.get_device_capability(device)))
        key = hashlib.sha256(repr((COMMON, source, options, capability, torch.version.cuda)).encode()).hexdigest()
        stored = cache_folder() / f"{name}-{key[:24]}.cubin"
        try:
            binary = stored.read_bytes()
        except OSError:
            binary, _ = _nvrtc_compile(COMMON + source, name, capability, nvcc_options=options)
            _store(stored, binary)
        loaded = _cuda_load_module(binary, [name])
        kernel = loaded[name] if isinstance(loaded, dict) else getattr(loaded, name)
        if shared >= 48 * 1024:
            kernel.set_shared_memory_config(shared)
    return kernel


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``TIGRANET_CACHE``, or the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("TIGRANET_CACHE") or Path(home) / "tigranet")


def _store(path: Path, binary: bytes) -> None:
    """Whole or not at all; without a place to write, the next process compiles again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(binary)
        os.replace(file.name, path)
    except OSError:
        pass


@lru_cache(maxsize=64)
def _root(grid: Grid, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return grid_of(*grid)._constant.to(dtype=dtype, device=device, copy=True)


def _bind(device: int) -> None:
    """Make the device current in this thread, as the backward pass runs in one that may never have used it."""
    if device not in _bound.__dict__.setdefault("devices", set()):
        torch.zeros(1, device=torch.device("cuda", device))
        _bound.devices.add(device)


def _launch(kernel: Any, blocks: int, block: tuple[int, int, int], args: list[Any], device: Any, shared: int) -> None:
    if blocks:
        _bind(device.index)
        with torch.cuda.device(device):
            kernel(grid=(blocks, 1, 1), block=block, args=args, shared_mem=shared)


def _statistics_kernel(name: str, z: Tensor, active: Tensor | None, order: int, grid: Grid) -> tuple[Any, Any, int]:
    backward = name.endswith("backward")
    measures = over_warps(grid[0], grid[1], z.itemsize, backward)
    assert measures is not None, "misfit() lets no such grid come here"
    macros = _grid_macros(grid, z.dtype) | measures
    macros |= {"ORDER": order, "MASKED": int(active is not None), "BACKWARD": int(backward)}
    kernel = _kernel(name, STATISTICS, tuple(macros.items()), 0, backward, z.device.index)
    return kernel, (32, measures["WARPS"] * measures["MAPS"], 1), measures["MAPS"]


@statistics.register_kernel("cuda")
def _(z: Tensor, active: Tensor | None, order: int, rounding: int, *description: Any) -> Tensor:
    grid: Any = description
    items = z.shape[0] * z.shape[1]
    phi = z.new_empty(z.shape[0], z.shape[1] * 2 * (order + 1))
    z = z.contiguous()
    mask = z if active is None else active.contiguous()
    kernel, block, maps = _statistics_kernel("statistics", z, active, order, grid)
    args = [z, mask, _root(grid, z.dtype, z.device), phi, items]
    _launch(kernel, -(-items // maps), block, args, z.device, 0)
    return phi


@statistics_backward.register_kernel("cuda")
def _(g: Tensor, phi: Tensor, z: Tensor, active: Tensor | None, order: int, rounding: int, *description: Any) -> Tensor:
    grid: Any = description
    items = z.shape[0] * z.shape[1]
    z, g, phi = z.contiguous(), g.contiguous(), phi.contiguous()
    mask = z if active is None else active.contiguous()
    g_z = torch.empty_like(z)
    kernel, block, maps = _statistics_kernel("statistics_backward", z, active, order, grid)
    noise = rounding * torch.finfo(z.dtype).eps
    args = [z, mask, _root(grid, z.dtype, z.device), phi, g, g_z, noise, items]
    _launch(kernel, -(-items // maps), block, args, z.device, 0)
    return g_z


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
    macros = _grid_macros(grid, y.dtype) | {
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
    return _kernel(name, CONVOLUTION, tuple(macros.items()), shared, not backward, y.device.index), threads, shared


@convolution.register_kernel("cuda")
def _(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, *description: Any) -> Tensor:
    grid: Any = description
    y, alpha, beta = y.contiguous(), alpha.contiguous(), beta.contiguous()
    z = y.new_empty(y.shape[0], alpha.shape[0], y.shape[2])
    mask = y if omega is None else omega.contiguous()
    kernel, threads, shared = _convolution_kernel("convolution", y, alpha, omega, False, grid)
    args = [y, alpha, beta, mask, _root(grid, y.dtype, y.device), z]
    _launch(kernel, len(y), (threads, 1, 1), args, y.device, shared)
    return z


@convolution_backward.register_kernel("cuda")
def _(
    g: Tensor, y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, wanted: bool, *description: Any
) -> tuple[Tensor, Tensor, Tensor]:
    grid: Any = description
    g, y, alpha, beta = g.contiguous(), y.contiguous(), alpha.contiguous(), beta.contiguous()
    mask = y if omega is None else omega.contiguous()
    g_y = y.new_empty(y.shape if wanted else (0, *y.shape[1:]))
    g_alpha, g_beta = y.new_empty(len(y), *alpha.shape), y.new_empty(len(y), *beta.shape)
    kernel, threads, shared = _convolution_kernel("convolution_backward", y, alpha, omega, wanted, grid)
    args = [g, y, alpha, beta, mask, _root(grid, y.dtype, y.device), g_y, g_alpha, g_beta]
    _launch(kernel, len(y), (threads, 1, 1), args, y.device, shared)
    return g_y, g_alpha.sum(0), g_beta.sum(0)


@pooling.register_kernel("cuda")
def _(z: Tensor, omega: Tensor | None, num_active: int, strict: bool, tolerance: float) -> Tensor:
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
    kernel = _kernel("pooling", POOLING, tuple(macros.items()), 0, True, z.device.index)
    count = z.shape[0] * z.shape[1]
    args = [z, mask, active, z.shape[1], min(num_active, nodes), float(tolerance), count]
    _launch(kernel, -(-count // maps), (32, warps * maps, 1), args, z.device, 0)
    return active
