import torch

from tigranet import GridLaplacian
from tigranet.layers import ResidualProduct
from tigranet.testing import SQUARE, equivariance_error, on_nodes


def test_it_adds_the_convolution_of_the_products():
    layer, y, grid = ResidualProduct(4, 3).double(), torch.rand(2, 4, 30, dtype=torch.float64), GridLaplacian(5, 6)
    expected = y + layer.conv(layer.products(y, grid), grid)
    torch.testing.assert_close(layer(y, grid), expected)
    omega = torch.rand(2, 1, 30) < 0.5
    torch.testing.assert_close(layer(y, grid, omega), expected * omega)


def test_it_rotates_with_the_image():
    layer, y, grid = (
        ResidualProduct(4, 3, smoothings=1).double(),
        torch.rand(2, 4, 49, dtype=torch.float64),
        GridLaplacian(7, 7),
    )
    layer(y, grid)
    layer.eval()
    for name, move in SQUARE.items():
        error = equivariance_error(lambda y: layer(y, grid), y, on_nodes(move, 7, 7))
        assert (error < 1e-12) == ("reflected" not in name), name


def test_gradients_reach_the_input_and_all_parameters():
    layer, y = ResidualProduct(4, 3), torch.rand(2, 4, 30, requires_grad=True)
    layer(y, GridLaplacian(5, 6)).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in layer.parameters())
    assert y.grad is not None
