import pytest
import torch

from export.conftest import portable_grid
from tigranet import GridLaplacian, Statistics
from tigranet.export.portable_statistics import PortableStatistics


@pytest.mark.parametrize("order", [0, 1, 5])
def test_statistics(order):
    maps = torch.randn(3, 4, 5, 6)
    expected = Statistics(order)(maps.flatten(2), GridLaplacian(5, 6, 8, "free", 0.3))
    actual = PortableStatistics(Statistics(order))(maps, portable_grid(maps, "free"))
    torch.testing.assert_close(actual, expected)
