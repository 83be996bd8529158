"""Compile CUDA C++ with nvcc, where it is installed, to see what the kernels use."""

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tigranet.ops.cuda.sources import read_source

needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="no CUDA compiler on this machine")
GRID = {"REAL": "float", "EIGHT": 1, "UNIFORM": 1, "DIAGONAL": 1.0, "WRAP_ROWS": 0, "WRAP_COLUMNS": 0, "MASKED": 1}


def compile_to_registers(source, macros):
    """Compile a source file of the package and return the report of the assembler."""
    return _report(source, tuple(f"-D{name}={value}" for name, value in macros.items()))


@cache  # several tests read the same report
def _report(source, options):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cu")
        file.write_text(read_source(source))
        command = ["nvcc", "-arch=sm_90", "-cubin", "-Xptxas", "-v", "-o", f"{folder}/kernel.cubin", str(file)]
        process = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stderr
