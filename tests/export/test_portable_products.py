import pytest

from export.conftest import assert_same_function
from tigranet.export.portable_products import PortableProducts, PortableResidualProduct
from tigranet.layers import GradientProduct, MirrorProduct, OrientedProduct, ResidualProduct


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("smoothings", [0, 1, 2])
@pytest.mark.parametrize("kind", [OrientedProduct, MirrorProduct, GradientProduct])
def test_products(kind, smoothings, boundary):
    assert_same_function(kind(8, 3, smoothings), PortableProducts, boundary)


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_the_residual_block(boundary):
    assert_same_function(ResidualProduct(8, 3), PortableResidualProduct, boundary)
