"""The kernels of the statistics: emulated, they agree with the reference; compiled, they stay in registers."""

import re

import numpy as np
import pytest
import torch

from agreement import assert_statistics_agree, statistics
from emulated import H200, emulate, needs_a_compiler
from nvcc import GRID, compile_to_registers, needs_nvcc
from oracles import random_signal
from tigranet import GridLaplacian
from tigranet.ops.cuda import statistics as kernels
from tigranet.ops.cuda.register_layout import RegisterLayout
from tigranet.ops.grid_spec import GridSpec


def plan_at(size, itemsize=4, backward=False, order=12, limits=H200):
    return kernels.launch_plan(GridSpec(size, size, 8, False, 1.0), itemsize, limits, backward, order)


@needs_nvcc
@pytest.mark.parametrize(("size", "backward"), [(26, False), (26, True), (50, False), (50, True)])
def test_a_map_stays_in_registers(size, backward):
    report = compile_to_registers("statistics", GRID | dict(plan_at(size, backward=backward).macros))
    assert re.search(r"\b0 bytes stack frame", report), report


@needs_nvcc
@pytest.mark.parametrize("size", [26, 50])
@pytest.mark.parametrize("backward", [False, True])
def test_the_plan_knows_the_shared_memory_of_the_kernel(size, backward):
    plan = plan_at(size, backward=backward)
    report = compile_to_registers("statistics", GRID | dict(plan.macros))
    used = re.search(r"(\d+) bytes smem", report)
    assert (int(used[1]) if used else 0) <= plan.static_shared_memory


def test_high_orders_are_streamed():
    assert "order 32" in plan_at(8, order=32)
    assert not isinstance(plan_at(8, order=31), str)


LAYOUTS = [  # columns per lane, bands per warp, warps per map: one of each kind
    (GridLaplacian(7, 9), 2, 2, 1),  # the last band is one row shorter, the last lane one column narrower
    (GridLaplacian(6, 9, boundary="torus"), 2, 3, 1),
    (GridLaplacian(11, 7, boundary="torus", diagonal=0.3), 3, 2, 2),
    (GridLaplacian(5, 64, neighbours=4), 2, 1, 2),  # no lane is free
    (GridLaplacian(8, 2, boundary="torus"), 1, 2, 2),
]


@needs_a_compiler
@pytest.mark.parametrize(("grid", "columns", "bands", "warps"), LAYOUTS)
def test_every_register_layout_agrees_with_the_reference_emulated(grid, columns, bands, warps, monkeypatch):
    emulate(monkeypatch)
    rows = -(-grid.height // (bands * warps))
    layout = RegisterLayout(columns, bands, rows, warps, 2 if warps == 1 else 1, 1, 64)
    monkeypatch.setattr(kernels, "register_layout", lambda *_: layout)
    kernels._prepare.cache_clear()
    rng = np.random.default_rng(warps)
    for dtype in (torch.float32, torch.float64) if columns == 3 else (torch.float32,):
        for _ in range(4):
            z = random_signal(rng, 2, 2, grid.num_nodes).to(dtype)
            assert_statistics_agree("emulated", 9, z, grid, torch.from_numpy(rng.random(z.shape) < 0.6), rng)
    kernels._prepare.cache_clear()


@needs_a_compiler
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_nan_and_infinity_give_the_results_of_the_reference_emulated(value, monkeypatch):
    emulate(monkeypatch)
    grid, g = GridLaplacian(5, 7), torch.ones(1, 2 * 2 * 4)
    z = torch.rand(1, 2, 35)
    z[0, 1, 6] = value
    actual, g_actual = statistics("emulated", 3, z, grid, None, g)
    expected, g_expected = statistics("plain", 3, z, grid, None, g)
    actual, expected = (phi.where(phi.isfinite(), torch.nan) for phi in (actual, expected))
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6, equal_nan=True)
    torch.testing.assert_close(g_actual, g_expected, rtol=1e-5, atol=1e-5, equal_nan=True)
