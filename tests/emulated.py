"""CUDA kernels run on the CPU, thread by thread, where there is a C++ compiler: slow, but it needs no GPU."""

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from tigranet.ops import nvrtc

HEADER = Path(__file__).with_suffix(".hpp")
needs_a_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler on this machine")


class Emulated:
    """A kernel, to be launched."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    def __call__(self, blocks: Any, block: Any, args: list[Any], shared: int) -> None:
        held = [
            ctypes.c_void_p(arg.data_ptr())
            if isinstance(arg, torch.Tensor)
            else ctypes.c_double(arg)
            if isinstance(arg, float)
            else ctypes.c_int(arg)
            for arg in args
        ]
        pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(value) for value in held))
        three = ctypes.c_int * 3
        self.library.launch(pointers, three(*blocks), three(*block), shared)


def emulate(monkeypatch: Any, folder: Path) -> None:
    """From here on the operators for CUDA run on CPU tensors, emulated."""

    @cache
    def kernel(name: str, source: str, macros: Any, shared: int, exact: bool, device: Any) -> Emulated:
        path = folder / f"{name}-{abs(hash((source, macros, exact)))}"
        text = (nvrtc.COMMON + source).replace("extern __shared__ char memory[];", "")
        path.with_suffix(".cpp").write_text(f'#include "{HEADER}"\n{text}\nEMULATED({name})\n')
        flags = ["-std=c++17", "-O1", "-mfma", "-w", "-shared", "-fPIC", "-ffp-contract=off"]
        defined = [f"-D{macro}={value}" for macro, value in macros]
        files = [str(path.with_suffix(".cpp")), "-o", str(path.with_suffix(".so"))]
        subprocess.run(["g++", *flags, *defined, *files], check=True)
        return Emulated(ctypes.CDLL(str(path.with_suffix(".so"))))

    def launch(kernel: Any, blocks: Any, block: Any, args: list[Any], device: Any, shared: int = 0) -> None:
        if all(blocks):
            kernel(blocks, block, args, shared)

    monkeypatch.setattr(nvrtc, "kernel", kernel)
    monkeypatch.setattr(nvrtc, "launch", launch)
