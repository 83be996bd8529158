import torch

from orientation_moves import quarter_turn, rotate_plain
from tigranet import GridLaplacian
from tigranet.layers import OrientationMax


def test_it_is_the_maximum_of_the_normalised_mixtures():
    z, grid = torch.randn(3, 16, 20, dtype=torch.float64), GridLaplacian(4, 5)
    layer = OrientationMax(16, 5, 8).double()
    mixed = layer.out_norm(layer.conv(layer.norm(z), grid)).reshape(3, 8, 5, 20)
    torch.testing.assert_close(layer(z, grid), mixed.max(1).values)
    omega = torch.rand(3, 1, 20) < 0.5
    torch.testing.assert_close(layer(z, grid, omega), mixed.max(1).values * omega)


def test_it_rotates_as_plain_maps():
    z, grid = torch.randn(3, 16, 49, dtype=torch.float64), GridLaplacian(7, 7)
    layer = OrientationMax(16, 5, 8).double()
    layer(z, grid)
    layer.eval()
    for turns in (1, 2, 3):
        moved = quarter_turn(8, 2, 7, 7, turns)(z)
        torch.testing.assert_close(layer(moved, grid), rotate_plain(7, 7, turns)(layer(z, grid)))


def test_the_result_has_the_precision_of_the_weights_under_autocast():
    layer, z = OrientationMax(16, 5, 8), torch.randn(3, 16, 20)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(z, GridLaplacian(4, 5)).dtype == torch.float32
