"""The CUDA C++ compiles, and keeps maps in registers; whether it is right, tests/kernels/test_cuda.py says on a GPU."""

import re
import shutil
import subprocess

import pytest

from tigranet.kernels.cuda_source import COMMON, CONVOLUTION, POOLING, STATISTICS
from tigranet.kernels.layout import over_warps

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="no CUDA compiler on this machine")
GRID = {"REAL": "float", "EIGHT": 1, "UNIFORM": 1, "DIAGONAL": 1.0, "WRAP_ROWS": 0, "WRAP_COLUMNS": 0, "MASKED": 1}


def compile_to_registers(folder, source, macros):
    file = folder / "kernel.cu"
    file.write_text(COMMON + source)
    options = [f"-D{name}={value}" for name, value in macros.items()]
    command = [
        "nvcc",
        "-arch=sm_90",
        "-cubin",
        "-Xptxas",
        "-v",
        "-o",
        str(folder / "kernel.cubin"),
        str(file),
        *options,
    ]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stderr


@pytest.mark.parametrize(("size", "backward"), [(26, 0), (26, 1), (50, 1)])
def test_a_map_stays_in_registers(tmp_path, size, backward):
    macros = (
        GRID | {"H": size, "W": size, "ORDER": 12, "BACKWARD": backward} | over_warps(size, size, 4, bool(backward))
    )
    report = compile_to_registers(tmp_path, STATISTICS, macros)
    assert re.search(r"\b0 bytes stack frame", report), report


def test_the_others_compile(tmp_path):
    shape = {"H": 9, "W": 8, "INPUTS": 2, "OUTPUTS": 3, "DEGREE": 2, "THREADS": 128, "ITEMS": 1, "WANTED": 1}
    for backward in (0, 1):
        torus = {"WRAP_ROWS": 1, "WRAP_COLUMNS": 1, "REAL": "double", "BACKWARD": backward}
        compile_to_registers(tmp_path, CONVOLUTION, GRID | shape | torus)
    macros = {"REAL": "float", "BITS": "unsigned", "H": 1, "W": 900, "MASKED": 1, "STRICT": 1}
    compile_to_registers(tmp_path, POOLING, macros | {"WARPS": 2, "MAPS": 1, "ITEMS": 15, "HELD": 1})
