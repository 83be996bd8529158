"""What the layers of products have in common is tested with each of them; here, how a new one is made, and
smoothing."""

import math

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from oracles import some_laplacians
from tigranet import GridLaplacian
from tigranet.graphs.grid import ISOTROPIC
from tigranet.layers import GradientProduct, MirrorProduct, OrientedProduct
from tigranet.layers.products import Products
from tigranet.ops import using
from tigranet.testing import SQUARE, equivariance_error, on_nodes

GRAPHS = some_laplacians()


class Plain(Products):
    """f times g itself."""

    KINDS = 1

    def products(self, mixtures, laplacian):
        f, g = mixtures.chunk(2, dim=1)
        return f * g


def test_a_new_product_is_one_method():
    layer, y = Plain(3, pairs=2), torch.rand(4, 3, 20)
    assert layer.out_maps == 5
    answer = layer(y, GridLaplacian(4, 5))
    f, g = layer.mixtures[:2] @ y, layer.mixtures[2:] @ y
    assert torch.equal(answer[:, :3], y)
    wanted = torch.nn.functional.batch_norm(f * g, None, None, training=True, eps=1e-5)
    wanted = wanted / (1 + wanted.abs() / 8).sqrt()
    torch.testing.assert_close(answer[:, 3:], wanted, rtol=1e-4, atol=1e-4)
    assert repr(layer).startswith("Plain(\n  3, pairs=2")


# smoothing


@pytest.mark.parametrize("smoothings", [0, 1, 2, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_mixtures_are_smoothed_by_a_power_of_the_dense_matrix(name, smoothings):
    laplacian = GRAPHS[name]
    layer, y = Plain(3, 2, smoothings).double(), torch.randn(4, 3, laplacian.num_nodes, dtype=torch.float64)
    identity = torch.eye(laplacian.num_nodes, dtype=torch.float64)
    smooth = torch.linalg.matrix_power(identity - layer.TAU * laplacian(identity), smoothings)
    torch.testing.assert_close(layer.smooth_mixtures(y, laplacian), layer.mixtures @ y @ smooth.T)


@pytest.mark.parametrize(("pixels", "least", "most"), [(2, -0.08, 0.14), (4, 0.56, 0.58), (8, 0.87, 0.88)])
def test_fine_waves_vanish_and_long_ones_stay(pixels, least, most):
    """On the torus a wave comes back times 1 - tau lambda; (2 pixels, 2 pixels) is the finest of all."""
    layer, torus = Plain(1, 1, 1).double(), GridLaplacian(8, 8, boundary="torus", diagonal=ISOTROPIC)
    nn.init.ones_(layer.mixtures)
    wave = (2 * math.pi / pixels * torch.arange(8.0).double()).cos()
    flat = torch.ones(8, dtype=torch.float64)
    for other in (flat, wave) if pixels == 2 else (flat,):
        y = torch.outer(wave, other).reshape(1, 1, 64)
        left = layer.smooth_mixtures(y, torus)[0, 0] @ y[0, 0] / (y**2).sum()
        torch.testing.assert_close(layer.smooth_mixtures(y, torus)[:, :1], left * y)
        assert least < left < most


@pytest.mark.parametrize("kind", [OrientedProduct, MirrorProduct, GradientProduct])
def test_a_smoothed_layer_is_the_layer_of_smooth_mixtures_and_turns_with_the_image(kind):
    grid, y = GridLaplacian(7, 7), torch.rand(3, 4, 49)
    layer = kind(4, 2, smoothings=1)
    answer = layer(y, grid)
    wanted = layer.standardise.train().rooted(layer.products(layer.smooth_mixtures(y, grid), grid), 8, behind=y)
    torch.testing.assert_close(answer, wanted)
    layer.eval()
    for name, move in SQUARE.items():
        if "reflected" not in name:
            assert equivariance_error(lambda y: layer(y, grid), y, on_nodes(move, 7, 7)) < 1e-6
    assert "pairs=2, smoothings=1" in repr(layer)


def test_the_gradients_of_a_smoothed_layer_are_right():
    layer, y = OrientedProduct(2, 1, 2).double(), torch.randn(2, 2, 20, dtype=torch.float64, requires_grad=True)
    grid = GridLaplacian(4, 5)
    assert gradcheck(lambda y, w: torch.func.functional_call(layer, {"mixtures": w}, (y, grid)), (y, layer.mixtures))


@pytest.mark.parametrize("size", [(26, 26), (9, 5), (1, 7)])
@pytest.mark.parametrize("batch", [1, 40])
def test_fused_and_plain_smoothing_agree_forward_and_backward(size, batch):
    grid, found = GridLaplacian(*size, diagonal=ISOTROPIC), []
    y, layer = torch.randn(batch, 48, grid.num_nodes), OrientedProduct(48, 36, 1)
    upstream = torch.randn(batch, 72, grid.num_nodes)
    for mode in ("plain", "fused"):
        with using(mode):
            given = y.clone().requires_grad_()
            smooth = layer.smooth_mixtures(given, grid)
            found.append((smooth, *torch.autograd.grad(smooth, (given, layer.mixtures), upstream)))
    for came, wanted in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(came, wanted, rtol=1e-4, atol=1e-4 * float(wanted.detach().abs().max()))


def test_smoothing_less_than_never_is_refused():
    with pytest.raises(
        ValueError, match="wanted at least 1 map and 1 pair of mixtures, smoothed 0 times or more, got 3, 2"
    ):
        Plain(3, 2, -1)
