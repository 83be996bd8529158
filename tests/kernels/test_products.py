"""The fused oriented products are the plain ones to the bit; their gradients to rounding."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from oracles import random_grid, random_signal
from tigranet import GridLaplacian
from tigranet.kernels import using
from tigranet.layers.oriented_product import _products

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def run(mode, f, g, grid, mirrored, upstream):
    f, g = (tensor.detach().requires_grad_() for tensor in (f, g))
    with using(mode):
        answer = _products(f, g, grid, mirrored)
    return answer.detach(), torch.autograd.grad(answer, (f, g), upstream)


@pytest.mark.parametrize("seed", range(4))
def test_fifty_random_cases(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        grid, batch, pairs = random_grid(rng), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        f = random_signal(rng, batch, pairs, grid.num_nodes)
        g = random_signal(rng, batch, pairs, grid.num_nodes).to(f.dtype)
        mirrored = bool(rng.integers(2))
        upstream = torch.from_numpy(rng.standard_normal((batch, (2 if mirrored else 4) * pairs, grid.num_nodes)))
        (came, g_came), (wanted, g_wanted) = (
            run(mode, f, g, grid, mirrored, upstream.to(f.dtype)) for mode in ("fused", "plain")
        )
        assert torch.equal(came, wanted), grid
        for mine, other, partner in zip(g_came, g_wanted, (g, f), strict=True):
            scale = 16 * partner.abs().max() * upstream.abs().max()
            assert (mine - other).abs().max() <= TOLERANCE[f.dtype] * scale, grid


def test_first_and_second_derivatives():
    f, g = torch.randn(2, 1, 2, 12, dtype=torch.float64).requires_grad_().unbind(0)
    for boundary in ("free", "torus"):
        grid = GridLaplacian(3, 4, boundary=boundary)
        with using("fused"):
            for mirrored in (False, True):
                assert gradcheck(lambda f, g, grid=grid, m=mirrored: _products(f, g, grid, m), (f, g))
            assert gradgradcheck(lambda f, g, grid=grid: _products(f, g, grid, False), (f, g))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("node", [0, 4, 11, 19])
def test_nan_and_infinity_come_out_as_from_the_plain_version(value, node):
    f, g, grid = torch.rand(2, 2, 20), torch.rand(2, 2, 20), GridLaplacian(4, 5)
    f[0, 1, node] = value
    came, wanted = (run(mode, f, g, grid, False, torch.ones(2, 8, 20))[0] for mode in ("fused", "plain"))
    torch.testing.assert_close(came, wanted, rtol=0, atol=0, equal_nan=True)


def test_an_empty_batch_and_the_operators_registration():
    with using("fused"):
        assert _products(torch.rand(0, 2, 20), torch.rand(0, 2, 20), GridLaplacian(4, 5), False).shape == (0, 8, 20)
    f, g = (torch.rand(2, 2, 20, requires_grad=True) for _ in range(2))
    for mirrored in (False, True):
        args = (f, g, mirrored, 4, 5, 8, False, 1.0)
        torch.library.opcheck(torch.ops.tigranet.oriented_products.default, args)
