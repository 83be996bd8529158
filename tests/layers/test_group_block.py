import torch

from tigranet import GridLaplacian
from tigranet.layers import GroupBlock


def test_it_adds_two_convolutions_each_after_a_normalisation():
    block, y, grid = GroupBlock(16, 8, 3).double(), torch.randn(2, 16, 30, dtype=torch.float64), GridLaplacian(5, 6)
    inner = block.convs[0](block.norms[0](y), grid)
    expected = y + block.convs[1](block.norms[1](inner), grid)
    torch.testing.assert_close(block(y, grid), expected)
    omega = torch.rand(2, 1, 30) < 0.5
    torch.testing.assert_close(block(y, grid, omega), expected * omega)


def test_a_block_whose_last_filters_are_zero_changes_nothing():
    block, y = GroupBlock(8, 4, 5), torch.randn(2, 8, 30)
    torch.nn.init.zeros_(block.convs[1].weight)
    torch.testing.assert_close(block(y, GridLaplacian(5, 6)), y)


def test_gradients_reach_the_input_and_all_parameters():
    block, y = GroupBlock(16, 8, 3), torch.randn(2, 16, 30, requires_grad=True)
    block(y, GridLaplacian(5, 6)).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in block.parameters())
    assert y.grad is not None
