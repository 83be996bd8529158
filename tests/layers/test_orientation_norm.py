import pytest
import torch
from torch.autograd import gradcheck

from tigranet import GridLaplacian
from tigranet.layers import OrientationNorm


def test_the_moments_are_those_of_a_feature_over_batch_nodes_and_orientations():
    norm, y = OrientationNorm(3, 4).double(), torch.randn(5, 12, 7, dtype=torch.float64) + 2
    with torch.no_grad():
        norm.scale.copy_(torch.tensor([1.0, -2.0, 0.5]))
        norm.bias.copy_(torch.tensor([0.1, 0.0, -0.2]))
    parts = y.reshape(5, 4, 3, 7)
    mean = parts.mean((0, 1, 3), keepdim=True)
    variance = ((parts - mean) ** 2).mean((0, 1, 3), keepdim=True)
    scale, bias = (parameter.reshape(1, 1, 3, 1) for parameter in (norm.scale, norm.bias))
    expected = ((parts - mean) / (variance + 1e-5).sqrt() * scale + bias).clamp(min=0)
    torch.testing.assert_close(norm(y), expected.reshape(5, 12, 7))


def test_the_estimates_are_right_from_the_first_batch_on():
    norm, y = OrientationNorm(2, 4).double(), 3 * torch.randn(50, 8, 20, dtype=torch.float64) + 1
    trained = norm(y)
    torch.testing.assert_close(norm.eval()(y), trained)


@pytest.mark.parametrize("layout", ["maps first", "pixels first"])
def test_both_layouts_give_the_same_result_in_their_own_layout(layout):
    norm, y = OrientationNorm(3, 8), torch.randn(2, 24, 10)
    expected = norm(y)
    if layout == "pixels first":
        y = y.transpose(1, 2).contiguous().transpose(1, 2)
        assert norm(y).stride(1) == 1
    torch.testing.assert_close(norm(y), expected)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_gradcheck(mode):
    norm = OrientationNorm(2, 4).double()
    norm.train(mode == "train")
    with torch.no_grad():
        norm.bias.fill_(0.05)
    assert gradcheck(norm, torch.randn(2, 8, 3, dtype=torch.float64, requires_grad=True))


def test_one_number_per_feature_and_empty_batches_use_the_estimates():
    norm = OrientationNorm(2, 1)
    torch.testing.assert_close(norm(torch.ones(1, 2, 1)), torch.full((1, 2, 1), (1 + 1e-5) ** -0.5))
    assert OrientationNorm(2, 4)(torch.ones(0, 8, 5)).shape == (0, 8, 5)


def test_a_wrong_number_of_maps_is_an_error():
    with pytest.raises(ValueError, match=r"\(batch, 12, nodes\).*\(2, 11, 5\)"):
        OrientationNorm(3, 4)(torch.rand(2, 11, 5))


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_border_is_that_of_the_grid(mode, boundary):
    grid, y = GridLaplacian(4, 5, boundary=boundary), torch.randn(2, 8, 20)
    norm = OrientationNorm(2, 4).train(mode == "train")
    expected = grid.pad(norm(y).unflatten(2, (4, 5)), 2).flatten(2)
    torch.testing.assert_close(norm(y, grid, 2), expected)


def test_a_border_without_a_grid_is_an_error():
    with pytest.raises(ValueError, match="border of 2 pixels"):
        OrientationNorm(2, 4)(torch.rand(2, 8, 5), None, 2)
