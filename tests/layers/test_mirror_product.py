"""What differs from OrientedProduct, whose tests also run for this layer."""

import torch

from tigranet import GridLaplacian
from tigranet.layers import MirrorProduct, OrientedProduct
from tigranet.testing import SQUARE, equivariance_error, on_nodes


def test_the_products_are_the_real_parts():
    f, g, grid = torch.rand(2, 3, 20), torch.rand(2, 3, 20), GridLaplacian(4, 5)
    four, two = (kind(3, 3).products(torch.cat((f, g), 1), grid) for kind in (OrientedProduct, MirrorProduct))
    assert torch.equal(four.unflatten(1, (4, 3))[:, ::2], two.unflatten(1, (2, 3)))


def test_the_products_reflect_with_the_image_bit_for_bit():
    grid, layer, y = GridLaplacian(7, 7), MirrorProduct(3, 2), torch.randn(2, 4, 49)
    for move in SQUARE.values():
        assert equivariance_error(lambda y: layer.products(y, grid), y, on_nodes(move, 7, 7)) == 0


def test_there_are_two_products_per_pair():
    assert MirrorProduct(3, 2).out_maps == 7
    assert repr(MirrorProduct(3, 2)).startswith("MirrorProduct(")
