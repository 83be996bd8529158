"""The CUDA C++ compiles and keeps maps in registers; emulated on the CPU, its answers are the plain version's."""

import re

import numpy as np
import pytest
import torch

from agreement import assert_convolutions_agree, assert_statistics_agree, statistics
from emulated import emulate, needs_a_compiler
from nvcc import GRID, compile_to_registers, needs_nvcc
from oracles import random_signal
from tigranet import DynamicPool, GridLaplacian, SpectralConv
from tigranet.ops import cuda, using
from tigranet.ops.cuda_source import CONVOLUTION, POOLING, STATISTICS
from tigranet.ops.grid_spec import Held, over_warps


@needs_nvcc
@pytest.mark.parametrize(("size", "backward"), [(26, 0), (26, 1), (50, 0), (50, 1)])
def test_a_map_stays_in_registers(tmp_path, size, backward):
    held = over_warps(size, size, 4, bool(backward))._asdict()
    macros = GRID | {"H": size, "W": size, "ORDER": 12, "BACKWARD": backward} | {k.upper(): v for k, v in held.items()}
    report = compile_to_registers(tmp_path, STATISTICS, macros)
    assert re.search(r"\b0 bytes stack frame", report), report


@needs_nvcc
def test_the_others_compile(tmp_path):
    shape = {"H": 9, "W": 8, "INPUTS": 2, "OUTPUTS": 3, "DEGREE": 2, "THREADS": 128, "ITEMS": 1, "WANTED": 1}
    for backward in (0, 1):
        torus = {"WRAP_ROWS": 1, "WRAP_COLUMNS": 1, "REAL": "double", "BACKWARD": backward}
        compile_to_registers(tmp_path, CONVOLUTION, GRID | shape | torus)
    macros = {"REAL": "float", "BITS": "unsigned", "H": 1, "W": 900, "MASKED": 1, "STRICT": 1}
    compile_to_registers(tmp_path, POOLING, macros | {"WARPS": 2, "MAPS": 1, "ITEMS": 15, "HELD": 1})


LAYOUTS = [  # columns a lane, bands a warp, warps a map: one of each kind
    (GridLaplacian(7, 9), 2, 2, 1),  # the last band has a row less, the last lane a column
    (GridLaplacian(6, 9, boundary="torus"), 2, 3, 1),
    (GridLaplacian(11, 7, boundary="torus", diagonal=0.3), 3, 2, 2),
    (GridLaplacian(5, 64, neighbours=4), 2, 1, 2),  # no lane is free
    (GridLaplacian(8, 2, boundary="torus"), 1, 2, 2),
]


@needs_a_compiler
@pytest.mark.parametrize(("grid", "columns", "groups", "warps"), LAYOUTS)
def test_statistics_however_a_map_is_held(grid, columns, groups, warps, tmp_path, monkeypatch):
    emulate(monkeypatch, tmp_path)
    rows = -(-grid.height // (groups * warps))
    maps = 2 if warps == 1 else 1
    monkeypatch.setattr(cuda, "over_warps", lambda *_: Held(columns, groups, rows, warps, maps, 1))
    rng = np.random.default_rng(warps)
    for dtype in (torch.float32, torch.float64) if columns == 3 else (torch.float32,):
        for _ in range(4):
            z = random_signal(rng, 2, 2, grid.num_nodes).to(dtype)
            assert_statistics_agree("emulated", 9, z, grid, torch.from_numpy(rng.random(z.shape) < 0.6), rng)


@needs_a_compiler
def test_statistics_of_not_a_number(tmp_path, monkeypatch):
    emulate(monkeypatch, tmp_path)
    grid, g = GridLaplacian(5, 7), torch.ones(1, 2 * 2 * 4)
    for value in (torch.nan, torch.inf):
        z = torch.rand(1, 2, 35)
        z[0, 1, 6] = value
        (came, g_came), (wanted, g_wanted) = (statistics(mode, 3, z, grid, None, g) for mode in ("emulated", "plain"))
        came, wanted = (phi.where(phi.isfinite(), torch.nan) for phi in (came, wanted))
        torch.testing.assert_close(came, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)
        torch.testing.assert_close(g_came, g_wanted, rtol=1e-5, atol=1e-5, equal_nan=True)


@needs_a_compiler
def test_convolution_and_pooling(tmp_path, monkeypatch):
    emulate(monkeypatch, tmp_path)
    rng = np.random.default_rng(0)
    grid, conv = GridLaplacian(9, 8, boundary="torus"), SpectralConv(3, 4, 2)
    omega = torch.from_numpy(rng.random((2, 1, 72)) < 0.6)
    y = torch.from_numpy(rng.standard_normal((2, 3, 72))).float()
    assert_convolutions_agree("emulated", conv, y, grid, omega, rng)
    with using("plain"):
        wanted = DynamicPool(20)(y, omega)
    assert torch.equal(cuda.cuda_pooling(y, omega, 20, False, DynamicPool(20).tolerance), wanted)
