"""The base class is tested with each of its subclasses. Here: how to define a new one, and smoothing."""

import math

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from oracles import some_laplacians
from tigranet import GridLaplacian
from tigranet.graphs.grid import ISOTROPIC
from tigranet.layers import GradientProduct, MirrorProduct, OrientedProduct
from tigranet.layers.product_layer import ProductLayer
from tigranet.ops import using
from tigranet.testing import SQUARE, equivariance_error, on_nodes

GRAPHS = some_laplacians()


class PointwiseProduct(ProductLayer):
    """The pointwise product f g."""

    KINDS = 1

    def products(self, mixtures, laplacian):
        f, g = mixtures.chunk(2, dim=1)
        return f * g


def test_a_new_layer_defines_one_method():
    layer, y = PointwiseProduct(3, pairs=2), torch.rand(4, 3, 20)
    assert layer.out_maps == 5
    result = layer(y, GridLaplacian(4, 5))
    f, g = layer.mixtures[:2] @ y, layer.mixtures[2:] @ y
    assert torch.equal(result[:, :3], y)
    expected = torch.nn.functional.batch_norm(f * g, None, None, training=True, eps=1e-5)
    expected = expected / (1 + expected.abs() / 8).sqrt()
    torch.testing.assert_close(result[:, 3:], expected, rtol=1e-4, atol=1e-4)
    assert repr(layer).startswith("PointwiseProduct(\n  3, pairs=2")


# smoothing


@pytest.mark.parametrize("smoothings", [0, 1, 2, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_smoothing_multiplies_by_a_power_of_the_dense_matrix(name, smoothings):
    laplacian = GRAPHS[name]
    layer, y = PointwiseProduct(3, 2, smoothings).double(), torch.randn(4, 3, laplacian.num_nodes, dtype=torch.float64)
    identity = torch.eye(laplacian.num_nodes, dtype=torch.float64)
    smooth = torch.linalg.matrix_power(identity - layer.TAU * laplacian(identity), smoothings)
    torch.testing.assert_close(layer.smooth_mixtures(y, laplacian), layer.mixtures @ y @ smooth.T)


@pytest.mark.parametrize(("pixels", "lowest", "highest"), [(2, -0.08, 0.14), (4, 0.56, 0.58), (8, 0.87, 0.88)])
def test_smoothing_removes_fine_waves_and_keeps_long_ones(pixels, lowest, highest):
    """On the torus a wave is multiplied by 1 - tau lambda; (2 pixels, 2 pixels) is the finest wave."""
    layer, torus = PointwiseProduct(1, 1, 1).double(), GridLaplacian(8, 8, boundary="torus", diagonal=ISOTROPIC)
    nn.init.ones_(layer.mixtures)
    wave = (2 * math.pi / pixels * torch.arange(8.0).double()).cos()
    flat = torch.ones(8, dtype=torch.float64)
    for other in (flat, wave) if pixels == 2 else (flat,):
        y = torch.outer(wave, other).reshape(1, 1, 64)
        factor = layer.smooth_mixtures(y, torus)[0, 0] @ y[0, 0] / (y**2).sum()
        torch.testing.assert_close(layer.smooth_mixtures(y, torus)[:, :1], factor * y)
        assert lowest < factor < highest


@pytest.mark.parametrize("kind", [OrientedProduct, MirrorProduct, GradientProduct])
def test_a_layer_with_smoothing_uses_smooth_mixtures_and_rotates_with_the_image(kind):
    grid, y = GridLaplacian(7, 7), torch.rand(3, 4, 49)
    layer = kind(4, 2, smoothings=1)
    result = layer(y, grid)
    expected = layer.standardise.train().compressed(layer.products(layer.smooth_mixtures(y, grid), grid), 8, after=y)
    torch.testing.assert_close(result, expected)
    layer.eval()
    for name, move in SQUARE.items():
        if "reflected" not in name:
            assert equivariance_error(lambda y: layer(y, grid), y, on_nodes(move, 7, 7)) < 1e-6
    assert "pairs=2, smoothings=1" in repr(layer)


def test_gradients_of_a_layer_with_smoothing():
    layer, y = OrientedProduct(2, 1, 2).double(), torch.randn(2, 2, 20, dtype=torch.float64, requires_grad=True)
    grid = GridLaplacian(4, 5)
    assert gradcheck(lambda y, w: torch.func.functional_call(layer, {"mixtures": w}, (y, grid)), (y, layer.mixtures))


@pytest.mark.parametrize("size", [(26, 26), (9, 5), (1, 7)])
@pytest.mark.parametrize("batch", [1, 40])
def test_fused_and_plain_smoothing_agree_forward_and_backward(size, batch):
    grid, results = GridLaplacian(*size, diagonal=ISOTROPIC), []
    y, layer = torch.randn(batch, 48, grid.num_nodes), OrientedProduct(48, 36, 1)
    upstream = torch.randn(batch, 72, grid.num_nodes)
    for mode in ("plain", "fused"):
        with using(mode):
            maps = y.clone().requires_grad_()
            smooth = layer.smooth_mixtures(maps, grid)
            results.append((smooth, *torch.autograd.grad(smooth, (maps, layer.mixtures), upstream)))
    for actual, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4 * float(expected.detach().abs().max()))


def test_a_negative_number_of_smoothings_is_an_error():
    with pytest.raises(ValueError, match=r"at least 1 map and 1 pair of mixtures, .*got 3, 2 and -1"):
        PointwiseProduct(3, 2, -1)
