import pytest
import torch

from tigranet.baselines.centred_pool import CentredMeanPool
from tigranet.testing import SQUARE, equivariance_error


@pytest.mark.parametrize("side", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("height", range(1, 12))
def test_it_commutes_with_the_symmetries_of_the_square_for_every_size(side, height):
    pool, maps = CentredMeanPool(side), torch.rand(2, 3, height, 9)
    assert pool(maps).shape == (2, 3, -(-height // side), -(-9 // side))
    assert max(equivariance_error(pool, maps, symmetry) for symmetry in SQUARE.values()) < 1e-6


def test_it_is_ordinary_mean_pooling_if_the_side_divides_the_size():
    maps = torch.rand(2, 3, 6, 9)
    squares = maps.unfold(2, 3, 3).unfold(3, 3, 3).mean((-2, -1))
    torch.testing.assert_close(CentredMeanPool(3)(maps), squares)


def test_otherwise_zeros_are_added_at_both_ends():
    row = torch.arange(1.0, 6).reshape(1, 1, 1, 5)  # 0 [1 2 3 4 5] 0, windows of three, two apart
    torch.testing.assert_close(CentredMeanPool(2)(row.expand(1, 1, 2, 5))[0, 0, 0], torch.tensor([1.0, 3.0, 3.0]))


def test_repr():
    assert str(CentredMeanPool(2)) == "CentredMeanPool(2)"
