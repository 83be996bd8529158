"""The fused convolution equals the reference bit for bit, and its gradients up to rounding."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from agreement import assert_convolutions_agree, convolution
from oracles import random_grid, random_signal
from tigranet import GridLaplacian, SpectralConv
from tigranet.ops import using
from tigranet.testing import SQUARE, equivariance_error, on_nodes, torus_shift


@pytest.mark.parametrize("seed", range(6))
def test_random_cases(seed):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    for _ in range(50):
        grid, batch = random_grid(rng), int(rng.integers(1, 4))
        in_maps, out_maps, degree = (int(rng.integers(low, high)) for low, high in ((1, 8), (1, 8), (0, 7)))
        y = random_signal(rng, batch, in_maps, grid.num_nodes)
        conv = SpectralConv(in_maps, out_maps, degree).to(y.dtype)
        omega = torch.from_numpy(rng.random((batch, 1, grid.num_nodes)) < 0.6) if rng.random() < 0.6 else None
        assert_convolutions_agree("fused", conv, y, grid, omega, rng)


@pytest.mark.parametrize("size", [(150, 70), (2, 6000)])
def test_large_images_are_computed_in_pieces(size):
    grid, conv = GridLaplacian(*size), SpectralConv(6, 7, 5).double()
    y, g = (
        torch.randn(1, 6, grid.num_nodes, dtype=torch.float64),
        torch.randn(1, 7, grid.num_nodes, dtype=torch.float64),
    )
    (actual, g_actual), (expected, g_expected) = (
        convolution(mode, conv, y, grid, None, g) for mode in ("fused", "plain")
    )
    assert torch.equal(actual, expected)
    for mine, other in zip(g_actual, g_expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-10 * float(other.abs().max()))


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_maps_rotate_with_the_image_bit_for_bit(boundary, dtype):
    grid, conv = GridLaplacian(26, 26, boundary=boundary), SpectralConv(3, 10, 4).to(dtype)
    y = torch.rand(2, 3, 26 * 26, dtype=dtype)
    with using("fused"):
        for transform in [*SQUARE.values(), *([torus_shift(3, 20)] if boundary == "torus" else [])]:
            assert equivariance_error(lambda y: conv(y, grid), y, on_nodes(transform, 26, 26)) == 0


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("node", [0, 4, 11, 19])
def test_nan_and_infinity_propagate_as_in_the_reference(value, node):
    grid, y, conv = GridLaplacian(4, 5), torch.rand(2, 2, 20), SpectralConv(2, 3, 3)
    y[0, 1, node] = value
    for omega in (None, torch.rand(2, 1, 20) < 0.5):
        actual, expected = (
            convolution(mode, conv, y, grid, omega, torch.ones(2, 3, 20))[0] for mode in ("fused", "plain")
        )
        assert torch.allclose(actual, expected, rtol=0, atol=0, equal_nan=True)


def test_an_empty_batch():
    conv, y = SpectralConv(2, 3, 2), torch.rand(0, 2, 20, requires_grad=True)
    with using("fused"):
        conv(y, GridLaplacian(4, 5), torch.ones(0, 1, 20, dtype=torch.bool)).sum().backward()
    assert y.grad.shape == y.shape
    assert (conv.alpha.grad == 0).all()


def test_gradients_that_are_not_needed_are_not_computed():
    conv, grid = SpectralConv(2, 3, 2), GridLaplacian(4, 5)
    y = torch.rand(2, 2, 20)
    with using("fused"):
        conv(y, grid).sum().backward()
        assert y.grad is None
        assert conv.alpha.grad is not None
        conv.requires_grad_(False)
        assert not conv(y, grid).requires_grad
        conv(y.requires_grad_(), grid).sum().backward()
        assert y.grad is not None


def test_first_and_second_derivatives():
    conv, grid, omega = SpectralConv(2, 2, 2).double(), GridLaplacian(3, 4), torch.rand(1, 1, 12) < 0.8
    y = torch.randn(1, 2, 12, dtype=torch.float64, requires_grad=True)

    def function(y, alpha, beta):
        return torch.func.functional_call(conv, {"alpha": alpha, "beta": beta}, (y, grid, omega))

    with using("fused"):
        assert gradcheck(function, (y, conv.alpha, conv.beta))
        assert gradgradcheck(function, (y, conv.alpha, conv.beta))


def test_the_operator_passes_the_checks_of_pytorch():
    conv, y = SpectralConv(2, 3, 2), torch.rand(2, 2, 20, requires_grad=True)
    for omega in (None, torch.rand(2, 1, 20) < 0.5):
        args = (y, conv.alpha, conv.beta, omega, 4, 5, 8, False, 1.0)
        torch.library.opcheck(torch.ops.tigranet.convolution.default, args)
