"""The CUDA kernels against the plain version on the same device: run on a machine with a GPU."""

import numpy as np
import pytest
import torch

from agreement import assert_convolutions_agree, assert_statistics_agree, statistics
from oracles import random_grid, random_signal
from tigranet import DynamicPool, GridLaplacian, SpectralConv, Statistics
from tigranet.ops import using
from tigranet.testing import SQUARE, equivariance_error, on_nodes

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
CASES = 25  # of each seed, which has one grid, order and degree, so that little is compiled


@pytest.mark.parametrize("seed", range(40))
def test_a_thousand_random_cases(seed):
    rng = np.random.default_rng(seed)
    grid, order, degree = random_grid(rng, 70), int(rng.integers(0, 14)), int(rng.integers(0, 5))
    torch.manual_seed(seed)
    masked = bool(rng.random() < 0.6)
    for _ in range(CASES):
        y = random_signal(rng, int(rng.integers(1, 4)), 2, grid.num_nodes).cuda()
        conv = SpectralConv(2, 3, degree).to(y)
        omega = torch.from_numpy(rng.random((len(y), 1, grid.num_nodes)) < 0.6).cuda() if masked else None
        assert_convolutions_agree("fused", conv, y, grid, omega, rng)
        with torch.no_grad():
            z = conv(y, grid, omega)
        num_active = int(rng.integers(1, grid.num_nodes + 3))
        answers = []
        for mode in ("fused", "plain"):
            with using(mode):
                strict = DynamicPool(num_active, "strict")(z, omega)
                answers.append((DynamicPool(num_active)(z, omega), strict.sum(-1)))
        for mine, other in zip(*answers, strict=True):
            assert torch.equal(mine, other)
        active = answers[0][0] if masked else None
        assert_statistics_agree("fused", order, z, grid, active, rng)
        assert_statistics_agree("fused", order, y, grid, None if active is None else active[:, :2], rng)


@pytest.mark.parametrize("size", [(300, 200), (1, 5000), (5000, 2), (130, 131)])
@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_grids_of_any_size(size, boundary):
    rng = np.random.default_rng(0)
    for dtype in (torch.float32, torch.float64):
        grid = GridLaplacian(*size, boundary=boundary)
        y = torch.from_numpy(rng.standard_normal((2, 3, grid.num_nodes))).to("cuda", dtype)
        omega = torch.from_numpy(rng.random((2, 1, grid.num_nodes)) < 0.8).cuda()
        assert_convolutions_agree("fused", SpectralConv(3, 4, 3).to(y), y, grid, omega, rng)
        assert_statistics_agree("fused", 12, y, grid, y > 0, rng)
        assert_statistics_agree("fused", 2, y, grid, None, rng)


def test_any_order():
    rng = np.random.default_rng(0)
    grid, z = GridLaplacian(12, 13), torch.rand(2, 3, 156, dtype=torch.float64, device="cuda")
    assert_statistics_agree("fused", 40, z, grid, None, rng)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("size", [(4, 5), (26, 26), (50, 50), (100, 120)])
def test_nan_and_infinity_come_out_as_from_the_plain_version(value, size):
    grid = GridLaplacian(*size)
    for node in (0, grid.num_nodes // 2 + 3, grid.num_nodes - 1):
        z = torch.rand(1, 2, grid.num_nodes, device="cuda")
        z[0, 1, node] = value
        for mask in (None, torch.rand_like(z) < 0.5):
            g = torch.ones(1, 2 * 2 * 5, device="cuda")
            (came, g_came), (wanted, g_wanted) = (statistics(mode, 4, z, grid, mask, g) for mode in ("fused", "plain"))
            came, wanted = (phi.where(phi.isfinite(), torch.nan) for phi in (came, wanted))
            torch.testing.assert_close(came, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)
            torch.testing.assert_close(g_came, g_wanted, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_sums_that_would_overflow_do_not():
    for size in (28, 50, 128):
        z, grid = 1e37 * torch.rand(1, 2, size * size, device="cuda"), GridLaplacian(size, size)
        g = torch.ones(1, 16, device="cuda")
        came, wanted = (statistics(mode, 3, z, grid, None, g)[0][:, ::2] for mode in ("fused", "plain"))
        torch.testing.assert_close(came, wanted, rtol=1e-5, atol=0)


def test_maps_that_are_nearly_constant_have_the_variance_of_the_plain_version():
    for size in (26, 50, 128):
        z, grid = torch.rand(2, 3, size * size, device="cuda") + 100, GridLaplacian(size, size)
        g = torch.ones(2, 3 * 2, device="cuda")
        came, wanted = (statistics(mode, 0, z, grid, None, g)[0] for mode in ("fused", "plain"))
        torch.testing.assert_close(came, wanted, rtol=1e-4, atol=0)


@pytest.mark.parametrize("size", [26, 120])
@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_the_maps_of_a_turned_image_are_the_turned_maps_bit_for_bit(size, boundary):
    grid, conv = GridLaplacian(size, size, boundary=boundary), SpectralConv(3, 10, 4).cuda()
    y = torch.rand(2, 3, size * size, device="cuda")
    with using("fused"):
        for transform in SQUARE.values():
            assert equivariance_error(lambda y: conv(y, grid), y, on_nodes(transform, size, size)) == 0


def test_no_more_is_kept_for_backward_than_twice_the_input():
    kept = []
    z = torch.randn(2, 5, 128 * 128, device="cuda", requires_grad=True)
    with using("fused"), torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        Statistics(12)(z, GridLaplacian(128, 128), z.detach() > 0)
    assert 0 < sum(tensor.nbytes for tensor in kept) <= 2 * z.nbytes


def test_empty_batches():
    for size in (5, 130):
        y, grid = torch.rand(0, 2, size * size, device="cuda", requires_grad=True), GridLaplacian(size, size)
        with using("fused"):
            conv = SpectralConv(2, 3, 2).cuda()
            z = conv(y, grid, torch.ones(0, 1, size * size, dtype=torch.bool, device="cuda"))
            Statistics(3)(z, grid).sum().backward()
        assert y.grad.shape == y.shape
        assert (conv.alpha.grad == 0).all()
