"""Grids of any size: emulated on the CPU here, and on a GPU in tests/ops/test_cuda.py."""

import numpy as np
import pytest
import torch

from agreement import assert_convolutions_agree, assert_statistics_agree, statistics
from emulated import emulate, needs_a_compiler
from oracles import random_grid, random_signal
from tigranet import GridLaplacian, SpectralConv
from tigranet.ops import cuda, streamed

pytestmark = needs_a_compiler


@pytest.fixture(autouse=True)
def _everything_is_streamed(tmp_path, monkeypatch):
    emulate(monkeypatch, tmp_path)
    monkeypatch.setattr(cuda, "over_warps", lambda *_: None)
    monkeypatch.setattr(cuda, "in_shared", lambda *_: False)


@pytest.mark.parametrize("seed", range(2))
def test_random_cases(seed):
    rng = np.random.default_rng(seed)
    grid = GridLaplacian(70, 35, boundary="torus") if seed == 0 else random_grid(rng)
    conv = SpectralConv(2, 3, 2 - seed)
    for _ in range(5):
        y = random_signal(rng, 2, 2, grid.num_nodes).float()
        omega = torch.from_numpy(rng.random((2, 1, grid.num_nodes)) < 0.6) if rng.random() < 0.5 else None
        assert_convolutions_agree("emulated", conv, y, grid, omega, rng)
        active = torch.from_numpy(rng.random(y.shape) < 0.6) if rng.random() < 0.5 else None
        assert_statistics_agree("emulated", int(rng.integers(0, 14)), y, grid, active, rng)


def test_a_few_maps_at_a_time(monkeypatch):
    monkeypatch.setattr(streamed, "MEMORY", 2000)
    monkeypatch.setattr(streamed, "MOST", 1)
    rng = np.random.default_rng(0)
    grid, y = GridLaplacian(5, 6), torch.rand(3, 2, 30)
    assert_convolutions_agree("emulated", SpectralConv(2, 3, 2), y, grid, None, rng)
    assert_statistics_agree("emulated", 3, y, grid, y < 0.5, rng)
    assert_statistics_agree("emulated", 2, y, grid, None, rng)


def test_orders_that_no_number_has_bits_for():
    rng = np.random.default_rng(0)
    assert_statistics_agree("emulated", 40, torch.rand(1, 2, 30, dtype=torch.float64), GridLaplacian(5, 6), None, rng)


def test_not_a_number():
    z, grid, g = torch.rand(1, 2, 20), GridLaplacian(4, 5), torch.ones(1, 2 * 2 * 4)
    z[0, 1, 7] = torch.inf
    (came, g_came), (wanted, g_wanted) = (statistics(mode, 3, z, grid, None, g) for mode in ("emulated", "plain"))
    came, wanted = (phi.where(phi.isfinite(), torch.nan) for phi in (came, wanted))
    torch.testing.assert_close(came, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)
    torch.testing.assert_close(g_came, g_wanted, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_nothing():
    assert streamed.statistics(torch.rand(0, 2, 20), 3, (4, 5, 8, False, 1.0)).shape == (0, 16)
    assert streamed.statistics(torch.rand(2, 0, 20), 3, (4, 5, 8, False, 1.0)).shape == (2, 0)
