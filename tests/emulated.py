"""Run CUDA kernels on the CPU, thread by thread, where there is a C++ compiler: slow, but no GPU is needed."""

import atexit
import ctypes
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from tigranet.ops.cuda import limits as cuda_limits
from tigranet.ops.cuda import nvrtc
from tigranet.ops.cuda.limits import DeviceLimits

HEADER = Path(__file__).with_suffix(".hpp")
H200 = DeviceLimits(227 * 1024, 1024, 64 * 1024)
FLAGS = ["-std=c++17", "-O0", "-mfma", "-mf16c", "-w", "-fPIC", "-ffp-contract=off"]
needs_a_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler on this machine")


@cache
def precompiled_header() -> Path:
    """Compile the header once per process: that takes a third of the time of compiling a kernel."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    header = Path(shutil.copy(HEADER, folder.name))
    subprocess.run(["g++", *FLAGS, "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True)
    return header


@cache
def compiled_library(names: tuple[str, ...], source: str, macros: Any) -> ctypes.CDLL:
    """Compile kernels for the CPU, as functions ``launch_<name>``."""
    text = source.replace("extern __shared__ char memory[];", "")
    functions = "\n".join(f"EMULATED({name})" for name in names)
    definitions = "\n".join(f"#define {macro} {value}" for macro, value in macros)  # behind the header, which has none
    with tempfile.TemporaryDirectory() as folder:
        program, library = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        program.write_text(f'#include "{precompiled_header()}"\n{definitions}\n{text}\n{functions}\n')
        subprocess.run(["g++", *FLAGS, "-shared", str(program), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))


def kernels_of(source: str, name: str) -> tuple[str, ...]:
    """Return the names of all kernels of a source, or only ``name`` if a macro selects one of them."""
    if "#if !BACKWARD" in source:
        return (name,)
    return tuple(re.findall(r'extern "C" __global__ void\s+(?:__launch_bounds__\(.*\)\s+)?(\w+)\(', source))


def emulate(monkeypatch: pytest.MonkeyPatch, limits: DeviceLimits = H200) -> None:
    """Let the launch functions of ``tigranet.ops.cuda`` run on CPU tensors, on a device with these limits."""

    def kernel(name: str, source: str, macros: Any, shared: int, exact: bool, device: Any) -> nvrtc.Kernel:
        library = compiled_library(kernels_of(source, name), source, macros)
        return nvrtc.Kernel(name, library[f"launch_{name}"], shared, owner=None)

    def launch(kernel: nvrtc.Kernel, blocks: Any, block: Any, args: list[Any], device: Any) -> None:
        assert block[0] * block[1] * block[2] <= limits.threads_per_block
        assert kernel.dynamic_shared_memory <= limits.shared_memory_per_block
        if not all(blocks):
            return
        values = [
            ctypes.c_void_p(arg.data_ptr())
            if isinstance(arg, torch.Tensor)
            else ctypes.c_double(arg)
            if isinstance(arg, float)
            else ctypes.c_int(arg)
            for arg in args
        ]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        three = ctypes.c_int * 3
        kernel.function(pointers, three(*blocks), three(*block), kernel.dynamic_shared_memory)

    monkeypatch.setattr(nvrtc, "kernel", kernel)
    monkeypatch.setattr(nvrtc, "launch", launch)
    monkeypatch.setattr(cuda_limits, "device_limits", lambda device: limits)
