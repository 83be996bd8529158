"""Fused products of image gradients agree with the reference, forward and backward."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from oracles import random_grid, random_signal
from tigranet import GridLaplacian
from tigranet.ops import oriented_products, using
from tigranet.testing import SQUARE

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def run(mode, y, grid, kinds, g):
    y = y.detach().requires_grad_()
    with using(mode):
        z = oriented_products(y, grid, kinds)
        return z.detach(), torch.autograd.grad(z, y, g)[0]


@pytest.mark.parametrize("kinds", [4, 2])
@pytest.mark.parametrize("seed", range(3))
def test_random_cases(seed, kinds):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        grid, pairs = random_grid(rng), int(rng.integers(1, 4))
        y = random_signal(rng, 2, 2 * pairs, grid.num_nodes)
        g = torch.from_numpy(rng.standard_normal((2, kinds * pairs, grid.num_nodes))).to(y.dtype)
        (actual, g_actual), (expected, g_expected) = (run(mode, y, grid, kinds, g) for mode in ("fused", "plain"))
        largest = y.abs().max()
        assert (actual - expected).abs().max() <= TOLERANCE[y.dtype] * largest**2, grid
        assert (g_actual - g_expected).abs().max() <= TOLERANCE[y.dtype] * largest * g.abs().max(), grid


@pytest.mark.parametrize("kinds", [4, 2])
@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_gradients(boundary, kinds):
    grid = GridLaplacian(3, 4, boundary=boundary)
    y = torch.randn(1, 2, 12, dtype=torch.float64, requires_grad=True)  # the random cases have more images and pairs
    with using("fused"):
        assert gradcheck(lambda y: oriented_products(y, grid, kinds), y)
        assert gradgradcheck(lambda y: oriented_products(y, grid, kinds), y)


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_the_products_rotate_with_the_image_bit_for_bit(boundary):
    grid, y = GridLaplacian(9, 9, boundary=boundary), torch.rand(2, 6, 81)
    for move in SQUARE.values():
        with using("fused"):
            moved = oriented_products(move(y.unflatten(-1, (9, 9))).flatten(-2), grid, 2)
            assert torch.equal(moved, move(oriented_products(y, grid, 2).unflatten(-1, (9, 9))).flatten(-2))


@pytest.mark.parametrize("node", [0, 7, 19])
def test_a_nan_propagates_as_in_the_reference(node):
    y = torch.rand(1, 2, 20)
    y[0, 1, node] = torch.nan
    actual, expected = (run(mode, y, GridLaplacian(4, 5), 4, torch.ones(1, 4, 20))[0] for mode in ("fused", "plain"))
    assert torch.equal(actual.isnan(), expected.isnan())


def test_an_empty_batch():
    with using("fused"):
        assert oriented_products(torch.rand(0, 4, 20), GridLaplacian(4, 5), 4).shape == (0, 8, 20)


def test_the_operator_passes_the_checks_of_pytorch():
    y = torch.rand(2, 4, 20, requires_grad=True)
    torch.library.opcheck(torch.ops.tigranet.oriented_products.default, (y, 4, 4, 5, 8, False, 1.0))
