import math

import pytest
import torch

from tigranet.baselines.resampling import on_pixels


def test_a_point_on_a_pixel_becomes_a_gaussian_around_it():
    (pixels,) = on_pixels(torch.tensor([[1.0, -2.0]]), 5, 0.5)
    assert pixels[4, 3] == 1  # to the right of the centre and below it
    assert pixels[4, 2] == pytest.approx(math.exp(-2))
    assert pixels[3, 4] == pytest.approx(math.exp(-4))


def test_rotating_the_points_rotates_the_pixels():
    x, y = points = torch.rand(2, 9, dtype=torch.float64) * 4 - 2
    rotated = on_pixels(torch.stack([-y, x], 1), 7, 0.7)
    torch.testing.assert_close(rotated, torch.rot90(on_pixels(points.T, 7, 0.7), 1, (1, 2)))


def test_the_sum_over_pixels_hardly_depends_on_the_position_of_the_point():
    total = on_pixels(torch.rand(50, 2, dtype=torch.float64), 9, 0.7).sum((1, 2))
    assert (total / (2 * math.pi * 0.7**2) - 1).abs().max() < 3e-4
