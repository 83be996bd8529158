"""Compile CUDA C++ at run time with PyTorch's own NVRTC, store the result on disk, and launch it.

Whatever goes wrong here raises :class:`KernelUnavailableError` with the reason, and the operator then uses plain
PyTorch. Failures are remembered, so that the next call does not try again.
"""

import ctypes
import hashlib
import os
import tempfile
import threading
from contextlib import nullcontext
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tigranet import torch_compat
from tigranet.cache_folder import cache_folder
from tigranet.ops.cuda.launch_plan import Block, Macros
from tigranet.ops.cuda.limits import MAX_STATIC_SHARED_MEMORY
from tigranet.ops.fallback import KernelUnavailableError, warn_once

_MAX_DYNAMIC_SHARED_MEMORY_ATTRIBUTE = 8
_MAX_REASON_LENGTH = 500
_NUMBER_TYPES: dict[type, Any] = {int: ctypes.c_int, float: ctypes.c_double}

_thread = threading.local()
_failures: dict[tuple[Any, ...], str] = {}
"""Kernels that could not be compiled or loaded, and why."""
_compiler_failure: list[str] = []
"""Why nothing can be compiled at all, once that is known."""


class Kernel(NamedTuple):
    """A kernel that is loaded on a device."""

    name: str
    function: Any
    """The driver's handle."""
    dynamic_shared_memory: int
    """Bytes that every launch asks for."""
    owner: Any
    """PyTorch's object, which keeps the kernel loaded."""


def why_not_compiling() -> str | None:
    """Say why no kernel can be compiled, if an earlier attempt has shown it.

    Returns:
        The reason, or None if nothing is known.
    """
    return _compiler_failure[0] if _compiler_failure else None


def forget_failures() -> None:
    """Let the next call try again to compile what has failed."""
    _failures.clear()
    _compiler_failure.clear()


@lru_cache(maxsize=256)
def kernel(
    name: str, source: str, macros: Macros, dynamic_shared_memory: int, exact: bool, device: torch.device
) -> Kernel:
    """Load a kernel, from disk if it was compiled before.

    Args:
        name: Name of the function.
        source: The CUDA C++ source.
        macros: Names and values that are compiled in.
        dynamic_shared_memory: Bytes of shared memory that every launch asks for.
        exact: Whether the compiler must not fuse multiplications with additions.
        device: The CUDA device.

    Returns:
        The kernel.

    Raises:
        KernelUnavailableError: If it cannot be compiled or loaded.
    """
    key = (name, source, macros, dynamic_shared_memory, exact, device)
    if key in _failures:
        raise KernelUnavailableError(_failures[key])
    options = [f"-D{macro}={value}" for macro, value in macros] + ["--fmad=false"] * exact
    try:
        _initialise_in_this_thread(device.index)
        with torch.cuda.device(device):
            loaded = _load_or_compile(name, source, options, device)
            function = loaded.func
            if dynamic_shared_memory >= MAX_STATIC_SHARED_MEMORY:
                attribute = _MAX_DYNAMIC_SHARED_MEMORY_ATTRIBUTE
                _check(_driver().cuFuncSetAttribute(function, attribute, dynamic_shared_memory))
    except KernelUnavailableError as error:
        _failures[key] = str(error)
        raise
    except (OSError, RuntimeError, AttributeError, TypeError) as error:
        if isinstance(error, torch.OutOfMemoryError) or torch.cuda.is_current_stream_capturing():
            raise  # the next attempt may succeed
        _failures[key] = f"the CUDA kernel '{name}' cannot be loaded: {_brief(error)}"
        raise KernelUnavailableError(_failures[key]) from error
    return Kernel(name, function, dynamic_shared_memory, loaded)


def _load_or_compile(name: str, source: str, options: list[str], device: torch.device) -> Any:
    capability = "".join(map(str, torch.cuda.get_device_capability(device)))
    content = hashlib.sha256(repr((source, options, capability, torch.version.cuda)).encode()).hexdigest()
    path = cache_folder() / f"kernels-{content[:24]}.cubin"  # the other kernels of the source are in it too
    load = torch_compat.load_cuda_module()
    try:
        binary = read_binary(path)
        if binary is not None:
            return _kernel_of(load(binary, [name]), name)
    except (ValueError, RuntimeError) as error:
        warn_once(f"tigranet compiles the CUDA kernel '{name}' again, because '{path}' is damaged: {_brief(error)}")
    binary = _compile(source, name, capability, options)
    loaded = _kernel_of(load(binary, [name]), name)
    store_binary(path, binary)
    return loaded


def _compile(source: str, name: str, capability: str, options: list[str]) -> bytes:
    if _compiler_failure:
        raise KernelUnavailableError(_compiler_failure[0])
    try:
        binary, _ = torch_compat.nvrtc_compile()(source, name, capability, nvcc_options=options)
    except RuntimeError as error:
        if not isinstance(error, torch_compat.MissingTorchAPIError):
            raise KernelUnavailableError(f"NVRTC cannot compile the CUDA kernel '{name}': {_brief(error)}") from error
        _compiler_failure[:] = [str(error)]
        raise KernelUnavailableError(_compiler_failure[0]) from error
    except (OSError, ImportError, TypeError, AttributeError) as error:  # the library or what PyTorch needs is missing
        _compiler_failure[:] = [f"NVRTC, which compiles CUDA kernels, cannot be used: {_brief(error)}"]
        raise KernelUnavailableError(_compiler_failure[0]) from error
    return binary


def _kernel_of(module: Any, name: str) -> Any:
    """Look up a kernel in what PyTorch's function returns, a dictionary or a module."""
    return module[name] if isinstance(module, dict) else getattr(module, name)


def read_binary(path: Path) -> bytes | None:
    """Read a compiled kernel from disk.

    Args:
        path: The file.

    Returns:
        The kernel, or None if there is no file or it cannot be read.

    Raises:
        ValueError: If the file is truncated or damaged. CUDA's driver would not notice and read past the end.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, binary = content[:32], content[32:]
    if hashlib.sha256(binary).digest() != digest:
        raise ValueError(f"the checksum of its {len(content)} bytes is wrong")
    return binary


def store_binary(path: Path, binary: bytes) -> None:
    """Store a compiled kernel with its checksum, completely or not at all.

    Where the folder cannot be written to, nothing is stored, and the next process compiles again.

    Args:
        path: The file.
        binary: The kernel.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(binary).digest() + binary)
        os.replace(file.name, path)
    except OSError:
        pass


def launch(kernel: Kernel, blocks: Block, block: Block, args: list[Any], device: torch.device) -> None:
    """Start a kernel on the current stream. It may be recorded into a CUDA graph.

    Args:
        kernel: The kernel.
        blocks: Number of blocks along each axis. If one of them is 0, nothing is started.
        block: Number of threads of a block along each axis.
        args: Arguments of the kernel: tensors on ``device``, integers (C++ ``int``) and floats (C++ ``double``).
        device: The CUDA device.

    Raises:
        KernelUnavailableError: If the driver rejects the launch.
    """
    if not all(blocks):
        return
    _initialise_in_this_thread(device.index)
    values = [
        _NUMBER_TYPES[type(arg)](arg) if type(arg) in _NUMBER_TYPES else ctypes.c_void_p(arg.data_ptr()) for arg in args
    ]
    pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    with nullcontext() if torch.cuda.current_device() == device.index else torch.cuda.device(device):
        stream = torch.cuda.current_stream(device).cuda_stream
        error = _driver().cuLaunchKernel(
            kernel.function, *blocks, *block, kernel.dynamic_shared_memory, stream, pointers, None
        )
    if error:
        raise KernelUnavailableError(
            f"the CUDA kernel '{kernel.name}' could not be launched with blocks {blocks} of {block} threads and "
            f"{kernel.dynamic_shared_memory} bytes of shared memory: {_error_text(error)}"
        )


@cache
def _driver() -> Any:
    """Find the CUDA driver once. PyTorch's own launch function searches for it every time, which takes 0.2 ms."""
    library = torch_compat.cuda_driver_library()
    library.cuLaunchKernel.argtypes = [ctypes.c_void_p, *7 * [ctypes.c_uint], *3 * [ctypes.c_void_p]]
    return library


def _check(error: int) -> None:
    if error:
        raise RuntimeError(_error_text(error))


def _error_text(error: int) -> str:
    """Describe an error number of the CUDA driver."""
    text = ctypes.c_char_p()
    try:
        _driver().cuGetErrorString(error, ctypes.byref(text))
    except AttributeError:
        text.value = None
    return f"CUDA error {error}" + (f" ({text.value.decode()})" if text.value else "")


def _brief(error: BaseException) -> str:
    """Shorten the text of an error, such as a compiler's log, to one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _MAX_REASON_LENGTH else f"{text[:_MAX_REASON_LENGTH]} ..."


def _initialise_in_this_thread(index: int) -> None:
    """Make a device usable in this thread: a backward pass runs in a thread that may never have used it."""
    if index not in _thread.__dict__.setdefault("devices", set()):
        torch.zeros(1, device=torch.device("cuda", index))
        _thread.devices.add(index)
