"""Mixing and filtering a few images at a time gives the same as the reference, forward and backward."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from oracles import random_grid, random_signal
from tigranet import GridLaplacian
from tigranet.ops import map_products, mixed_chebyshev_sum, mixing, using

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


@pytest.fixture(autouse=True)
def one_image_at_a_time(monkeypatch):
    monkeypatch.setattr(mixing, "MAX_MIXTURE_BYTES", 0)


def run(mode, weights, y, grid, degree, g):
    weights, y = weights.detach().requires_grad_(), y.detach().requires_grad_()
    with using(mode):
        z = mixed_chebyshev_sum(weights, y, grid, degree)
        return z.detach(), *torch.autograd.grad(z, (weights, y), g)


@pytest.mark.parametrize("own_products", [False, True])
@pytest.mark.parametrize("images", [1, 2, 5])
def test_random_cases(images, own_products, monkeypatch):
    monkeypatch.setattr(map_products, "_mkl_has_half_speed", lambda: own_products)
    rng = np.random.default_rng(images)
    for _ in range(40):
        grid, degree, maps, others = (
            random_grid(rng),
            int(rng.integers(1, 5)),
            *(int(rng.integers(1, 13)) for _ in range(2)),
        )
        y = random_signal(rng, 5, others, grid.num_nodes)
        weights = torch.from_numpy(rng.standard_normal(((degree + 1) * maps, others))).to(y.dtype)
        g = torch.from_numpy(rng.standard_normal((5, maps, grid.num_nodes))).to(y.dtype)
        monkeypatch.setattr(mixing, "MAX_MIXTURE_BYTES", images * len(weights) * grid.num_nodes * y.itemsize)
        for actual, expected in zip(
            run("fused", weights, y, grid, degree, g), run("plain", weights, y, grid, degree, g), strict=True
        ):
            assert (actual - expected).abs().max() <= 20 * TOLERANCE[y.dtype] * expected.abs().max(), grid


def test_maps_weights_and_gradients_in_other_memory_layouts():
    grid = GridLaplacian(4, 5)
    weights, y = torch.randn(3, 6, 2).transpose(1, 2).flatten(0, 1)[:, ::2], torch.randn(2, 20, 3).transpose(1, 2)
    g = torch.randn(2, 4, 20)[:, 1:3]
    for actual, expected in zip(
        run("fused", weights, y, grid, 2, g), run("plain", weights, y, grid, 2, g), strict=True
    ):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_gradients(monkeypatch):
    monkeypatch.setattr(mixing, "MAX_MIXTURE_BYTES", 1)  # one image at a time
    grid = GridLaplacian(3, 4)
    weights = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    y = torch.randn(2, 3, 12, dtype=torch.float64, requires_grad=True)
    with using("fused"):
        assert gradcheck(lambda *parts: mixed_chebyshev_sum(*parts, grid, 1), (weights, y))
        assert gradgradcheck(lambda *parts: mixed_chebyshev_sum(*parts, grid, 1), (weights, y))
        assert gradgradcheck(lambda weights: mixed_chebyshev_sum(weights, y.detach(), grid, 1).square(), weights)
        assert gradgradcheck(lambda y: mixed_chebyshev_sum(weights.detach(), y, grid, 1).square(), y)


def test_mixtures_that_fit_in_a_cache_are_computed_all_at_once(monkeypatch):
    weights, y, grid = torch.randn(4, 3), torch.randn(2, 3, 20, requires_grad=True), GridLaplacian(4, 5)
    names = [mixed_chebyshev_sum(weights, y, grid, 1).grad_fn.name()]
    monkeypatch.setattr(mixing, "MAX_MIXTURE_BYTES", 2 * 4 * 20 * 4)
    assert [*names, mixed_chebyshev_sum(weights, y, grid, 1).grad_fn.name()] == [
        "mixed_chebyshev_sumBackward",
        "chebyshev_sumBackward",
    ]


def test_an_empty_batch():
    with using("fused"):
        assert mixed_chebyshev_sum(torch.rand(6, 4), torch.rand(0, 4, 20), GridLaplacian(4, 5), 1).shape == (0, 3, 20)


def test_autocast_mixes_in_half_precision():
    weights, y, grid = torch.randn(4, 3), torch.randn(2, 3, 20), GridLaplacian(4, 5)
    exact = mixed_chebyshev_sum(weights, y, grid, 1)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = mixed_chebyshev_sum(weights, y, grid, 1)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, rtol=0, atol=0.2)


def test_the_operators_pass_the_checks_of_pytorch():
    weights, y = torch.rand(6, 4, requires_grad=True), torch.rand(2, 4, 20, requires_grad=True)
    grid = (4, 5, 8, False, 1.0)
    torch.library.opcheck(torch.ops.tigranet.mixed_chebyshev_sum.default, (weights, y, 1, *grid))
    args = (torch.rand(2, 3, 20), weights.detach(), y.detach(), 1, *grid)
    torch.library.opcheck(torch.ops.tigranet.mixed_chebyshev_sum_backward.default, args)
