"""CUDA C++ compiled at run time by PyTorch's own NVRTC, kept on disk for the next process, and launched."""

import ctypes
import hashlib
import os
import tempfile
import threading
from contextlib import nullcontext
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tigranet.ops.cuda_source import COMMON
from tigranet.ops.grid_spec import Grid, grid_of

Three = tuple[int, int, int]

_bound = threading.local()


@lru_cache(maxsize=256)
def kernel(
    name: str, source: str, macros: tuple[tuple[str, Any], ...], shared: int, exact: bool, device: torch.device
) -> Any:
    """The compiled kernel on ``device``, from the folder of compiled ones if it is there. ``exact``: no multiplication
    is fused with an addition, unless it says so."""
    from torch.cuda._utils import _cuda_load_module, _nvrtc_compile

    options = [f"-D{macro}={value}" for macro, value in macros] + ["--fmad=false"] * exact
    _bind(device.index)
    with torch.cuda.device(device):
        capability = "".join(map(str, torch.cuda.get_device_capability(device)))
        key = hashlib.sha256(repr((COMMON, source, options, capability, torch.version.cuda)).encode()).hexdigest()
        stored = cache_folder() / f"{name}-{key[:24]}.cubin"
        try:
            binary = stored.read_bytes()
        except OSError:
            binary, _ = _nvrtc_compile(COMMON + source, name, capability, nvcc_options=options)
            store(stored, binary)
        loaded = _cuda_load_module(binary, [name])
        found = loaded[name] if isinstance(loaded, dict) else getattr(loaded, name)
        if shared >= 48 * 1024:
            found.set_shared_memory_config(shared)
    return found


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``TIGRANET_CACHE``, or the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("TIGRANET_CACHE") or Path(home) / "tigranet")


def store(path: Path, binary: bytes) -> None:
    """Whole or not at all; without a place to write, the next process compiles again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(binary)
        os.replace(file.name, path)
    except OSError:
        pass


def launch(kernel: Any, blocks: Three, block: Three, args: list[Any], device: Any, shared: int = 0) -> None:
    """Start ``blocks`` of ``block`` threads on the current stream; nothing, if there are none."""
    if not all(blocks):
        return
    _bind(device.index)
    values = [_NUMBERS[type(arg)](arg) if type(arg) in _NUMBERS else ctypes.c_void_p(arg.data_ptr()) for arg in args]
    pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    with nullcontext() if torch.cuda.current_device() == device.index else torch.cuda.device(device):
        stream = torch.cuda.current_stream(device).cuda_stream
        error = _driver().cuLaunchKernel(kernel.func, *blocks, *block, shared, stream, pointers, None)
    if error:
        raise RuntimeError(
            f"CUDA's driver returned error {error} to a kernel of tigranet: TIGRANET_KERNELS=plain avoids it"
        )


_NUMBERS: dict[type, Any] = {int: ctypes.c_int, float: ctypes.c_double}


@cache
def _driver() -> Any:
    """CUDA's driver, looked for once. PyTorch's own way to launch looks for it every time: 0.2 ms on a fast machine."""
    from torch.cuda._utils import _get_gpu_runtime_library

    library = _get_gpu_runtime_library()
    library.cuLaunchKernel.argtypes = [ctypes.c_void_p, *7 * [ctypes.c_uint], *3 * [ctypes.c_void_p]]
    return library


def _bind(device: int) -> None:
    """Make the device current in this thread, as the backward pass runs in one that may never have used it."""
    if device not in _bound.__dict__.setdefault("devices", set()):
        torch.zeros(1, device=torch.device("cuda", device))
        _bound.devices.add(device)


def grid_macros(grid: Grid, dtype: torch.dtype) -> dict[str, Any]:
    """What every kernel is told of a grid when it is compiled: all but its size."""
    laplacian = grid_of(*grid)
    return {
        "REAL": "float" if dtype == torch.float32 else "double",
        "EIGHT": int(grid[2] == 8),
        "UNIFORM": int(grid[4] == 1),
        "DIAGONAL": repr(grid[4]),
        "WRAP_ROWS": int(laplacian._wrap_rows),
        "WRAP_COLUMNS": int(laplacian._wrap_columns),
    }


@lru_cache(maxsize=64)
def root(grid: Grid, dtype: torch.dtype, device: torch.device) -> Tensor:
    """:math:`D^{-1/2}` of a grid."""
    with torch.inference_mode(False):
        return grid_of(*grid)._constant.to(dtype=dtype, device=device, copy=True)
