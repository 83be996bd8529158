"""Chebyshev polynomials of maps and their sums, fused: the plain ones to rounding, and each other's adjoint."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from oracles import random_grid, random_signal
from tigranet import GridLaplacian
from tigranet.layers.mixed_conv import basis, summed
from tigranet.ops import using

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def both(function, *args):
    answers = []
    for mode in ("fused", "plain"):
        with using(mode):
            answers.append(function(*args))
    return answers


@pytest.mark.parametrize("seed", range(6))
def test_random_cases(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        grid, degree, maps = random_grid(rng), int(rng.integers(0, 7)), int(rng.integers(1, 4))
        y = random_signal(rng, 2, maps, grid.num_nodes)
        came, wanted = both(basis, y, grid, degree)
        assert (came - wanted).abs().max() <= TOLERANCE[y.dtype] * y.abs().max(), grid
        u = random_signal(rng, 2, maps * (degree + 1), grid.num_nodes)
        came, wanted = both(summed, u, grid, degree)
        assert (came - wanted).abs().max() <= TOLERANCE[u.dtype] * u.abs().sum(1).max(), grid


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_each_is_the_adjoint_of_the_other(boundary):
    grid = GridLaplacian(5, 4, boundary=boundary)
    y, u = torch.randn(2, 3, 20, dtype=torch.float64), torch.randn(2, 12, 20, dtype=torch.float64)
    with using("fused"):
        torch.testing.assert_close((basis(y, grid, 3) * u).sum(), (y * summed(u, grid, 3)).sum())
        assert gradcheck(lambda y: basis(y, grid, 3), y.requires_grad_())
        assert gradgradcheck(lambda u: summed(u, grid, 3).square(), u.requires_grad_())


def test_an_empty_batch_and_one_that_is_not_contiguous():
    grid = GridLaplacian(4, 5)
    with using("fused"):
        assert basis(torch.rand(0, 2, 20), grid, 2).shape == (0, 6, 20)
        assert summed(torch.rand(0, 6, 20), grid, 2).shape == (0, 2, 20)


@pytest.mark.parametrize("node", [0, 7, 19])
def test_a_nan_comes_out_as_from_the_plain_version(node):
    y = torch.rand(1, 2, 20)
    y[0, 1, node] = torch.nan
    came, wanted = both(basis, y, GridLaplacian(4, 5), 3)
    assert torch.equal(came.isnan(), wanted.isnan())


def test_they_are_well_made_operators():
    y, u = torch.rand(2, 3, 20, requires_grad=True), torch.rand(2, 6, 20, requires_grad=True)
    description = (4, 5, 8, False, 1.0)
    torch.library.opcheck(torch.ops.tigranet.chebyshev.default, (y, 2, *description))
    torch.library.opcheck(torch.ops.tigranet.chebyshev_sum.default, (u, 1, *description))
