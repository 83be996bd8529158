"""It compiles; whether it is right, tests/ops/test_streamed.py says."""

from nvcc import GRID, compile_to_registers, needs_nvcc
from tigranet.ops.streamed_source import BAND, STREAMED, TALL, THREADS


@needs_nvcc
def test_it_compiles_without_spilling(tmp_path):
    macros = {"SIGNALS": 5, "HELD": 1, "LEVELS": 5, "ITEMS": 8, "BAND": BAND, "TALL": TALL, "THREADS": THREADS}
    report = compile_to_registers(tmp_path, STREAMED, GRID | macros)
    assert report.count("0 bytes stack frame") == report.count("stack frame") == 4
