"""Fused Chebyshev polynomials and their sums agree with the references, and each is the adjoint of the other."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from oracles import GRIDS, random_grid, random_signal
from tigranet import GridLaplacian
from tigranet.ops import chebyshev_basis, chebyshev_sum, using

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def both(function, *args):
    results = []
    for mode in ("fused", "plain"):
        with using(mode):
            results.append(function(*args))
    return results


@pytest.mark.parametrize("seed", range(6))
def test_random_cases(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        grid, degree, maps = random_grid(rng), int(rng.integers(0, 7)), int(rng.integers(1, 4))
        y = random_signal(rng, 2, maps, grid.num_nodes)
        actual, expected = both(chebyshev_basis, y, grid, degree)
        assert (actual - expected).abs().max() <= TOLERANCE[y.dtype] * y.abs().max(), grid
        u = random_signal(rng, 2, maps * (degree + 1), grid.num_nodes)
        actual, expected = both(chebyshev_sum, u, grid, degree)
        assert (actual - expected).abs().max() <= TOLERANCE[u.dtype] * u.abs().sum(1).max(), grid


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_each_is_the_adjoint_of_the_other(boundary):
    grid = GridLaplacian(5, 4, boundary=boundary)
    y, u = torch.randn(2, 3, 20, dtype=torch.float64), torch.randn(2, 12, 20, dtype=torch.float64)
    with using("fused"):
        torch.testing.assert_close((chebyshev_basis(y, grid, 3) * u).sum(), (y * chebyshev_sum(u, grid, 3)).sum())
        assert gradcheck(lambda y: chebyshev_basis(y, grid, 3), y.requires_grad_())
        assert gradgradcheck(lambda u: chebyshev_sum(u, grid, 3).square(), u.requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("grid", GRIDS)
def test_the_polynomials_equal_the_reference_bit_for_bit(grid, dtype):
    laplacian = GridLaplacian(*grid)
    y = torch.randn(2, 3, laplacian.num_nodes, dtype=dtype, generator=torch.Generator().manual_seed(0))
    actual, expected = both(chebyshev_basis, y, laplacian, 4)
    assert torch.equal(actual, expected)


def test_an_empty_batch():
    grid = GridLaplacian(4, 5)
    with using("fused"):
        assert chebyshev_basis(torch.rand(0, 2, 20), grid, 2).shape == (0, 6, 20)
        assert chebyshev_sum(torch.rand(0, 6, 20), grid, 2).shape == (0, 2, 20)


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("node", [0, 47, 89])
def test_a_nan_propagates_as_in_the_reference(node, boundary):
    y = torch.rand(1, 8, 90)
    y[0, 7, node] = torch.nan
    for function in (chebyshev_basis, chebyshev_sum):
        actual, expected = both(function, y, GridLaplacian(9, 10, boundary=boundary), 3)
        assert torch.equal(actual.isnan(), expected.isnan())
        assert not actual.isnan().all()


def test_the_operators_pass_the_checks_of_pytorch():
    y, u = torch.rand(2, 3, 20, requires_grad=True), torch.rand(2, 6, 20, requires_grad=True)
    grid = (4, 5, 8, False, 1.0)
    torch.library.opcheck(torch.ops.tigranet.chebyshev_basis.default, (y, 2, *grid))
    torch.library.opcheck(torch.ops.tigranet.chebyshev_sum.default, (u, 1, *grid))
