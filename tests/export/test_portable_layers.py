"""Each portable layer computes the function of its layer, which the tests of whole networks do not tell apart."""

import pytest
import torch

from tigranet import GridLaplacian
from tigranet.export.portable_grid import GridOptions, PortableGrid, Stencils
from tigranet.export.portable_group import PortableGroupBlock, PortableGroupConv, PortableOrientationMax
from tigranet.export.portable_pooling import PortablePool
from tigranet.export.portable_products import PortableProducts, PortableResidualProduct
from tigranet.export.portable_spectral import PortableChebyshevSum, PortableMixedConv, PortableSpectralConv
from tigranet.export.portable_statistics import PortableStatistics
from tigranet.layers import (
    DynamicPool,
    GradientProduct,
    GroupBlock,
    GroupConv,
    LiftingConv,
    MirrorProduct,
    MixedConv,
    OrientationMax,
    OrientedProduct,
    ResidualProduct,
    SpectralConv,
    Statistics,
)
from tigranet.polynomials import chebyshev_sum

HEIGHT, WIDTH = 7, 6
LAYERS = {
    "SC": (lambda: SpectralConv(8, 5, 3), PortableSpectralConv),
    "MC, basis first": (lambda: MixedConv(8, 9, 4), PortableMixedConv),
    "MC, mixtures first": (lambda: MixedConv(8, 5, 4), PortableMixedConv),
    "MC of degree 0": (lambda: MixedConv(8, 5, 0), PortableMixedConv),
    "OP": (lambda: OrientedProduct(8, 3), PortableProducts),
    "OP, smoothed": (lambda: OrientedProduct(8, 3, 2), PortableProducts),
    "MP": (lambda: MirrorProduct(8, 3), PortableProducts),
    "GP": (lambda: GradientProduct(8, 3, 1), PortableProducts),
    "R": (lambda: ResidualProduct(8, 3), PortableResidualProduct),
    "LC": (lambda: LiftingConv(8, 3, 4, 5), PortableGroupConv),
    "GC": (lambda: GroupConv(8, 3, 4, 3), PortableGroupConv),
    "GB": (lambda: GroupBlock(8, 4, 3), PortableGroupBlock),
    "MO": (lambda: OrientationMax(8, 5, 4), PortableOrientationMax),
}


def portable_grid(maps, boundary):
    return PortableGrid(Stencils(GridOptions(8, boundary, 0.3)), maps)


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer(name, boundary):
    build, portable = LAYERS[name]
    layer, laplacian = build(), GridLaplacian(HEIGHT, WIDTH, 8, boundary, 0.3)
    for parameter in layer.parameters():  # also the scales and biases that start as ones and zeros
        torch.nn.init.normal_(parameter, std=0.5)
    maps = torch.rand(4, 8, HEIGHT, WIDTH)
    with torch.no_grad():
        layer.train()(maps.flatten(2), laplacian)
        expected = layer.eval()(maps.flatten(2), laplacian).unflatten(2, (HEIGHT, WIDTH))
        actual = portable(layer)(maps, portable_grid(maps, boundary))
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("degree", range(7))
def test_the_signs_of_the_recurrence(degree):
    """Clenshaw's recurrence with signs equals the plain one, for every remainder of the degree modulo 4."""
    maps, weights = torch.rand(2, 3, 5, 6), torch.randn(degree + 1, 4, 3)
    laplacian = GridLaplacian(5, 6, 8, "free", 0.3)
    u = [torch.einsum("oi,bin->bon", weight, maps.flatten(2)) for weight in weights]
    actual = PortableChebyshevSum(list(weights))(maps, portable_grid(maps, "free"))
    torch.testing.assert_close(actual.flatten(2), chebyshev_sum(u, laplacian), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_active", [1, 5, 1000])
@pytest.mark.parametrize("has_omega", [False, True])
def test_pooling_with_ties(num_active, has_omega):
    maps = torch.randint(0, 6, (3, 4, 5, 6)).float()
    omega = torch.rand(3, 1, 5, 6) < 0.4 if has_omega else None
    layer = DynamicPool(num_active)
    expected = layer(maps.flatten(2), None if omega is None else omega.flatten(2))
    assert torch.equal(PortablePool(layer)(maps, omega).flatten(2), expected)


@pytest.mark.parametrize("order", [0, 1, 5])
def test_statistics(order):
    maps = torch.randn(3, 4, 5, 6)
    expected = Statistics(order)(maps.flatten(2), GridLaplacian(5, 6, 8, "free", 0.3))
    actual = PortableStatistics(Statistics(order))(maps, portable_grid(maps, "free"))
    torch.testing.assert_close(actual, expected)
