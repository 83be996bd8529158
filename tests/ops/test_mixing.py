"""Maps mixed and filtered some images at a time: what mixing all and then filtering all gives, gradients too."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from oracles import random_grid, random_signal
from tigranet import GridLaplacian
from tigranet.layers.mixed_conv import mixed
from tigranet.ops import mixing as held
from tigranet.ops import using

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


@pytest.fixture(autouse=True)
def one_image_at_a_time(monkeypatch):
    monkeypatch.setattr(held, "HELD", 0)


def run(mode, weights, y, grid, degree, g):
    weights, y = weights.detach().requires_grad_(), y.detach().requires_grad_()
    with using(mode):
        z = mixed(weights, y, grid, degree)
        return z.detach(), *torch.autograd.grad(z, (weights, y), g)


@pytest.mark.parametrize("images", [1, 2, 5])
def test_random_cases(images, monkeypatch):
    rng = np.random.default_rng(images)
    for _ in range(40):
        grid, degree, maps, others = random_grid(rng), *(int(rng.integers(1, 5)) for _ in range(3))
        y = random_signal(rng, 5, others, grid.num_nodes)
        weights = torch.from_numpy(rng.standard_normal(((degree + 1) * maps, others))).to(y.dtype)
        g = torch.from_numpy(rng.standard_normal((5, maps, grid.num_nodes))).to(y.dtype)
        monkeypatch.setattr(held, "HELD", images * len(weights) * grid.num_nodes * y.itemsize)
        for came, wanted in zip(
            run("fused", weights, y, grid, degree, g), run("plain", weights, y, grid, degree, g), strict=True
        ):
            assert (came - wanted).abs().max() <= 20 * TOLERANCE[y.dtype] * wanted.abs().max(), grid


def test_maps_weights_and_gradients_that_lie_otherwise_in_memory():
    grid = GridLaplacian(4, 5)
    weights, y = torch.randn(3, 6, 2).transpose(1, 2).flatten(0, 1)[:, ::2], torch.randn(2, 20, 3).transpose(1, 2)
    g = torch.randn(2, 4, 20)[:, 1:3]
    for came, wanted in zip(run("fused", weights, y, grid, 2, g), run("plain", weights, y, grid, 2, g), strict=True):
        torch.testing.assert_close(came, wanted, rtol=1e-4, atol=1e-5)


def test_gradients(monkeypatch):
    monkeypatch.setattr(held, "HELD", 1)  # an image at a time, however small
    grid = GridLaplacian(3, 4)
    weights = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    y = torch.randn(2, 3, 12, dtype=torch.float64, requires_grad=True)
    with using("fused"):
        assert gradcheck(lambda *parts: mixed(*parts, grid, 1), (weights, y))
        assert gradgradcheck(lambda *parts: mixed(*parts, grid, 1), (weights, y))
        assert gradgradcheck(lambda weights: mixed(weights, y.detach(), grid, 1).square(), weights)
        assert gradgradcheck(lambda y: mixed(weights.detach(), y, grid, 1).square(), y)


def test_mixtures_that_a_cache_holds_are_made_all_at_once(monkeypatch):
    weights, y, grid = torch.randn(4, 3), torch.randn(2, 3, 20, requires_grad=True), GridLaplacian(4, 5)
    names = [mixed(weights, y, grid, 1).grad_fn.name()]
    monkeypatch.setattr(held, "HELD", 2 * 4 * 20 * 4)
    assert [*names, mixed(weights, y, grid, 1).grad_fn.name()] == ["mixedBackward", "chebyshev_sumBackward"]


def test_an_empty_batch():
    with using("fused"):
        assert mixed(torch.rand(6, 4), torch.rand(0, 4, 20), GridLaplacian(4, 5), 1).shape == (0, 3, 20)


def test_under_autocast_it_is_mixed_in_half_precision():
    weights, y, grid = torch.randn(4, 3), torch.randn(2, 3, 20), GridLaplacian(4, 5)
    exact = mixed(weights, y, grid, 1)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = mixed(weights, y, grid, 1)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, rtol=0, atol=0.2)


def test_it_is_a_well_made_operator():
    weights, y = torch.rand(6, 4, requires_grad=True), torch.rand(2, 4, 20, requires_grad=True)
    grid = (4, 5, 8, False, 1.0)
    torch.library.opcheck(held.mixed.seen, (weights, y, 1, *grid))
    torch.library.opcheck(held.mixed_backward.seen, (torch.rand(2, 3, 20), weights.detach(), y.detach(), 1, *grid))
