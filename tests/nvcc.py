"""CUDA C++ compiled, where there is a compiler for it, to see what it takes."""

import shutil
import subprocess

import pytest

from tigranet.ops.cuda_source import COMMON

needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="no CUDA compiler on this machine")
GRID = {"REAL": "float", "EIGHT": 1, "UNIFORM": 1, "DIAGONAL": 1.0, "WRAP_ROWS": 0, "WRAP_COLUMNS": 0, "MASKED": 1}


def compile_to_registers(folder, source, macros):
    file = folder / "kernel.cu"
    file.write_text(COMMON + source)
    options = [f"-D{name}={value}" for name, value in macros.items()]
    command = ["nvcc", "-arch=sm_90", "-cubin", "-Xptxas", "-v", "-o", str(folder / "kernel.cubin"), str(file)]
    finished = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stderr
