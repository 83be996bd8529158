"""The fused statistics agree with the reference, forward and backward."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from agreement import TOLERANCE, assert_statistics_agree, statistics
from oracles import random_grid, random_signal
from tigranet import GridLaplacian, Statistics
from tigranet.ops import using
from tigranet.testing import SQUARE, invariance_error, on_nodes


def run(mode, order, z, grid, active, g):
    return statistics(mode, order, z, grid, active, g.to(z.dtype).reshape(len(z), -1))


@pytest.mark.parametrize("seed", range(8))
def test_random_cases(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        grid, order = random_grid(rng), int(rng.integers(0, 14))
        z = random_signal(rng, int(rng.integers(1, 4)), int(rng.integers(1, 4)), grid.num_nodes)
        active = torch.from_numpy(rng.random(z.shape) < 0.6) if rng.random() < 0.6 else None
        assert_statistics_agree("fused", order, z, grid, active, rng)


@pytest.mark.parametrize("size", [(150, 70), (3, 5000), (5000, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_maps_are_summed_in_pieces(size, dtype):
    grid, g = GridLaplacian(*size), torch.ones(10)
    z = torch.rand(1, 1, grid.num_nodes, dtype=dtype) + 100
    (actual, g_actual), (expected, g_expected) = (run(mode, 4, z, grid, None, g) for mode in ("fused", "plain"))
    torch.testing.assert_close(actual, expected, rtol=1e-4 if dtype == torch.float32 else 1e-11, atol=0)
    torch.testing.assert_close(g_actual, g_expected, rtol=0, atol=TOLERANCE[dtype] * float(g_expected.abs().max()))


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("node", [0, 4, 11, 19])
@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_nan_and_infinity_propagate_as_in_the_reference(value, node, boundary):
    grid, z = GridLaplacian(4, 5, boundary=boundary), torch.rand(2, 2, 20)
    z[0, 1, node] = value
    active = torch.rand(2, 2, 20) < 0.5
    for mask in (None, active):
        (actual, g_actual), (expected, g_expected) = (
            run(mode, 4, z, grid, mask, torch.ones(40)) for mode in ("fused", "plain")
        )
        actual, expected = (phi.where(phi.isfinite(), torch.nan) for phi in (actual, expected))  # PyTorch's mean
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6, equal_nan=True)  # of infinity is inf or NaN
        torch.testing.assert_close(g_actual, g_expected, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("size", [1e18, 3e19, 1e37])
def test_sums_do_not_overflow(size):
    z = size * torch.rand(1, 2, 700)
    actual, expected = (run(mode, 3, z, GridLaplacian(28, 25), None, torch.ones(16))[0] for mode in ("fused", "plain"))
    assert torch.isfinite(actual[:, ::2]).all()
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=0)


def test_empty_batches_and_zero_maps():
    grid = GridLaplacian(4, 5)
    with using("fused"):
        assert Statistics(3)(torch.rand(0, 2, 20), grid).shape == (0, 16)
        assert Statistics(3)(torch.rand(2, 0, 20), grid).shape == (2, 0)


def test_the_statistics_do_not_change_when_the_image_is_rotated():
    z, grid = torch.randn(2, 3, 26 * 26), GridLaplacian(26, 26)
    with using("fused"):
        for transform in SQUARE.values():
            assert invariance_error(lambda z: Statistics(12)(z, grid), z, on_nodes(transform, 26, 26)) < 1e-6


def test_the_backward_pass_stores_at_most_twice_the_input():
    saved = []
    z, active = torch.randn(4, 5, 400, requires_grad=True), torch.rand(4, 5, 400) < 0.5
    with using("fused"), torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        Statistics(12)(z, GridLaplacian(20, 20), active)
    assert 0 < sum(tensor.nbytes for tensor in saved) <= 2 * z.nbytes


def test_first_and_second_derivatives():
    z = torch.randn(1, 2, 12, dtype=torch.float64, requires_grad=True)
    active, grid = torch.rand(1, 2, 12) < 0.8, GridLaplacian(3, 4, boundary="torus")
    with using("fused"):
        assert gradcheck(lambda z: Statistics(3)(z, grid, active), z)
        assert gradgradcheck(lambda z: Statistics(3)(z, grid, active), z)


def test_the_operator_passes_the_checks_of_pytorch():
    z, active = torch.randn(2, 2, 20, requires_grad=True), torch.rand(2, 2, 20) < 0.5
    grid = (4, 5, 8, False, 1.0)
    for mask in (None, active):
        torch.library.opcheck(torch.ops.tigranet.statistics.default, (z, mask, 3, 256, *grid))
