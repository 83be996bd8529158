"""The fused polynomials are the plain ones to the bit, and each other's adjoint."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from oracles import random_grid, random_signal
from tigranet import GridLaplacian
from tigranet.kernels import using
from tigranet.layers import MixedConv
from tigranet.layers.mixed_conv import _basis, _sum


@pytest.mark.parametrize("seed", range(3))
def test_fifty_random_cases(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        grid, batch, maps, degree = (
            random_grid(rng),
            *(int(rng.integers(1, 4)) for _ in range(2)),
            int(rng.integers(0, 7)),
        )
        y = random_signal(rng, batch, maps, grid.num_nodes)
        u = random_signal(rng, batch * (degree + 1), maps, grid.num_nodes).unflatten(0, (batch, degree + 1))
        answers = []
        for mode in ("fused", "plain"):
            with using(mode):
                answers.append((_basis(y, grid, degree), _sum(u, grid)))
        for came, wanted in zip(*answers, strict=True):
            assert torch.equal(came, wanted), (grid, degree)


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_one_is_the_adjoint_of_the_other(boundary):
    """The inner product of u with the polynomials of y is that of the sum of u with y."""
    grid = GridLaplacian(5, 6, boundary=boundary)
    y, u = torch.randn(2, 3, 30, dtype=torch.float64), torch.randn(2, 5, 3, 30, dtype=torch.float64)
    with using("fused"):
        torch.testing.assert_close((_basis(y, grid, 4) * u).sum(), (_sum(u, grid) * y).sum())


@pytest.mark.parametrize(("in_maps", "out_maps"), [(1, 3), (3, 2)])
def test_gradients_are_those_of_the_plain_layer(in_maps, out_maps):
    conv, grid, y = MixedConv(in_maps, out_maps, 3), GridLaplacian(9, 7), torch.rand(3, in_maps, 63, requires_grad=True)
    g = torch.randn(3, out_maps, 63)
    found = []
    for mode in ("fused", "plain"):
        with using(mode):
            found.append(torch.autograd.grad(conv(y, grid), (y, *conv.parameters()), g))
    for came, wanted in zip(*found, strict=True):
        torch.testing.assert_close(came, wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))


def test_first_and_second_derivatives():
    grid = GridLaplacian(3, 4, boundary="torus")
    y = torch.randn(1, 2, 12, dtype=torch.float64, requires_grad=True)
    u = torch.randn(1, 3, 2, 12, dtype=torch.float64, requires_grad=True)
    with using("fused"):
        for function, inputs in ((lambda y: _basis(y, grid, 2).square(), y), (lambda u: _sum(u, grid).square(), u)):
            assert gradcheck(function, inputs)
            assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("node", [0, 4, 11, 19])
def test_nan_and_infinity_come_out_as_from_the_plain_version(value, node):
    grid, y = GridLaplacian(4, 5), torch.rand(2, 2, 20)
    y[0, 1, node] = value
    answers = []
    for mode in ("fused", "plain"):
        with using(mode):
            answers.append(_basis(y, grid, 3))
    torch.testing.assert_close(*answers, rtol=0, atol=0, equal_nan=True)


def test_an_empty_batch_and_the_operators_registration():
    grid = GridLaplacian(4, 5)
    with using("fused"):
        assert _basis(torch.rand(0, 2, 20), grid, 3).shape == (0, 4, 2, 20)
        assert _sum(torch.rand(0, 4, 2, 20), grid).shape == (0, 2, 20)
    description = (4, 5, 8, False, 1.0)
    torch.library.opcheck(
        torch.ops.tigranet.chebyshev_basis.default, (torch.rand(2, 2, 20, requires_grad=True), 3, *description)
    )
    torch.library.opcheck(
        torch.ops.tigranet.chebyshev_sum.default, (torch.rand(2, 3, 2, 20, requires_grad=True), *description)
    )
