"""The streamed kernels, for grids of any size: emulated on the CPU here, and on a GPU in ``test_on_gpu.py``."""

import numpy as np
import pytest
import torch

from agreement import assert_convolutions_agree, assert_statistics_agree, statistics
from emulated import emulate, needs_a_compiler
from nvcc import GRID, compile_to_registers, needs_nvcc
from oracles import random_grid, random_signal
from tigranet import GridLaplacian, SpectralConv
from tigranet.ops.cuda import convolution, streamed
from tigranet.ops.cuda import statistics as statistics_kernels
from tigranet.ops.fallback import KernelUnavailableError
from tigranet.ops.grid_spec import GridSpec


@pytest.fixture
def _everything_is_streamed(monkeypatch):
    emulate(monkeypatch)
    for module in (convolution, statistics_kernels):
        monkeypatch.setattr(module, "launch_plan", lambda *_: "streamed for this test")
        module._prepare.cache_clear()
    yield
    for module in (convolution, statistics_kernels):
        module._prepare.cache_clear()


@needs_a_compiler
@pytest.mark.usefixtures("_everything_is_streamed")
@pytest.mark.parametrize("seed", range(2))
def test_random_cases_agree_with_the_reference_emulated(seed):
    rng = np.random.default_rng(seed)
    grid = GridLaplacian(70, 35, boundary="torus") if seed == 0 else random_grid(rng)
    conv = SpectralConv(2, 3, 2 - seed)
    for _ in range(5):
        y = random_signal(rng, 2, 2, grid.num_nodes).float()
        omega = torch.from_numpy(rng.random((2, 1, grid.num_nodes)) < 0.6) if rng.random() < 0.5 else None
        assert_convolutions_agree("emulated", conv, y, grid, omega, rng)
        active = torch.from_numpy(rng.random(y.shape) < 0.6) if rng.random() < 0.5 else None
        assert_statistics_agree("emulated", int(rng.integers(0, 14)), y, grid, active, rng)


@needs_a_compiler
@pytest.mark.usefixtures("_everything_is_streamed")
def test_a_few_maps_at_a_time_give_the_same_emulated(monkeypatch):
    monkeypatch.setattr(streamed, "WORKSPACE_BYTES", 2000)
    monkeypatch.setattr(streamed, "MAX_BLOCKS_Z", 1)
    rng = np.random.default_rng(0)
    grid, y = GridLaplacian(5, 6), torch.rand(3, 2, 30)
    assert_convolutions_agree("emulated", SpectralConv(2, 3, 2), y, grid, None, rng)
    assert_statistics_agree("emulated", 3, y, grid, y < 0.5, rng)
    assert_statistics_agree("emulated", 2, y, grid, None, rng)


@needs_a_compiler
def test_orders_above_the_register_kernel_agree_with_the_reference_emulated(monkeypatch):
    emulate(monkeypatch)
    rng = np.random.default_rng(0)
    assert_statistics_agree("emulated", 40, torch.rand(1, 2, 30, dtype=torch.float64), GridLaplacian(5, 6), None, rng)


@needs_a_compiler
@pytest.mark.usefixtures("_everything_is_streamed")
def test_infinity_gives_the_results_of_the_reference_emulated():
    z, grid, g = torch.rand(1, 2, 20), GridLaplacian(4, 5), torch.ones(1, 2 * 2 * 4)
    z[0, 1, 7] = torch.inf
    actual, g_actual = statistics("emulated", 3, z, grid, None, g)
    expected, g_expected = statistics("plain", 3, z, grid, None, g)
    actual, expected = (phi.where(phi.isfinite(), torch.nan) for phi in (actual, expected))
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6, equal_nan=True)
    torch.testing.assert_close(g_actual, g_expected, rtol=1e-5, atol=1e-5, equal_nan=True)


@needs_a_compiler
@pytest.mark.usefixtures("_everything_is_streamed")
def test_empty_batches_give_empty_results_emulated():
    grid = GridSpec(4, 5, 8, False, 1.0)
    assert streamed.statistics(torch.rand(0, 2, 20), 3, grid).shape == (0, 16)
    assert streamed.statistics(torch.rand(2, 0, 20), 3, grid).shape == (2, 0)


@needs_a_compiler
@pytest.mark.usefixtures("_everything_is_streamed")
def test_filters_with_too_many_coefficients_are_unavailable_emulated():
    y, alpha, g = torch.rand(1, 1, 20), torch.rand(1, 2000), torch.rand(1, 1, 20)
    with pytest.raises(KernelUnavailableError, match="2000 coefficients needs 63 KiB"):
        streamed.convolution_backward(g, y, alpha, torch.rand(1), None, True, GridSpec(4, 5, 8, False, 1.0))


@needs_nvcc
def test_it_compiles_without_spilling_registers():
    sizes = {"ROWS": streamed.ROWS, "WARPS": streamed.WARPS, "THREADS": streamed.THREADS}
    macros = {"SIGNALS": 5, "SIGNALS_IN_REGISTERS": 1} | sizes | dict(streamed.dots_plan(5, 4).macros)
    report = compile_to_registers("streamed", GRID | macros)
    assert report.count("0 bytes stack frame") == report.count("stack frame") == 4
