"""What the layers of products have in common is tested with each of them; here, how a new one is made."""

import torch

from tigranet import GridLaplacian
from tigranet.layers.products import Products


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
