import math

import pytest
import torch

from tigranet.baselines.resampling import on_pixels


def test_a_mass_on_a_pixel_is_a_gaussian_about_it():
    (pixels,) = on_pixels(torch.tensor([[1.0, -2.0]]), 5, 0.5)
    assert pixels[4, 3] == 1  # right of the centre, and below it
    assert pixels[4, 2] == pytest.approx(math.exp(-2))
    assert pixels[3, 4] == pytest.approx(math.exp(-4))


def test_points_turned_are_pixels_turned():
    x, y = points = torch.rand(2, 9, dtype=torch.float64) * 4 - 2
    turned = on_pixels(torch.stack([-y, x], 1), 7, 0.7)
    torch.testing.assert_close(turned, torch.rot90(on_pixels(points.T, 7, 0.7), 1, (1, 2)))


def test_the_mass_hardly_depends_on_where_between_the_pixels_it_lies():
    mass = on_pixels(torch.rand(50, 2, dtype=torch.float64), 9, 0.7).sum((1, 2))
    assert (mass / (2 * math.pi * 0.7**2) - 1).abs().max() < 3e-4
