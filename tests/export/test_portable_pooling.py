import pytest
import torch

from tigranet.export.portable_pooling import PortablePool
from tigranet.layers import DynamicPool


@pytest.mark.parametrize("num_active", [1, 5, 1000])
@pytest.mark.parametrize("has_omega", [False, True])
def test_pooling_with_ties(num_active, has_omega):
    maps = torch.randint(0, 6, (3, 4, 5, 6)).float()
    omega = torch.rand(3, 1, 5, 6) < 0.4 if has_omega else None
    layer = DynamicPool(num_active)
    expected = layer(maps.flatten(2), None if omega is None else omega.flatten(2))
    assert torch.equal(PortablePool(layer)(maps, omega).flatten(2), expected)
