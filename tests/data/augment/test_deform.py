"""Deformations of ramp images, whose pixel values are the coordinates at which each output pixel was read."""

import math

import pytest
import torch

from tigranet.data.augment.deform import deform


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def sampled_positions(height, width, count=400, **strengths):
    """Return the column and the row at which each output pixel is read, of shape (2, count, height, width)."""
    down, right = torch.meshgrid(
        torch.arange(height, dtype=torch.float64), torch.arange(width, dtype=torch.float64), indexing="ij"
    )
    ramps = torch.stack([right, down]).expand(count, 2, height, width)
    return deform(ramps, **strengths).transpose(0, 1)


def jacobian(positions, border):
    """Return the derivatives [[x_x, x_y], [y_x, y_y]] of the positions, without the border."""
    inner = slice(border, -border)
    return [[torch.gradient(values, dim=axis)[0][:, inner, inner] for axis in (2, 1)] for values in positions]


def test_without_strengths_nothing_changes():
    images = torch.rand(3, 2, 7, 9, dtype=torch.float64)
    torch.testing.assert_close(deform(images), images)


@pytest.mark.parametrize("shape", [(15, 15), (15, 21)])
def test_zoom_scales_both_axes_equally_about_the_centre(shape):
    (x_x, x_y), (y_x, y_y) = jacobian(sampled_positions(*shape, reach=0.5, zoom=0.2), 4)
    torch.testing.assert_close(x_x, y_y, rtol=0, atol=1e-9)
    assert max(x_y.abs().max(), y_x.abs().max()) < 1e-9
    assert 0.8 <= x_x.min() < 0.82
    assert 1.18 < x_x.max() <= 1.2
    centre = sampled_positions(*shape, reach=0.5, zoom=0.2)[:, :, shape[0] // 2, shape[1] // 2]
    assert (centre - torch.tensor([[shape[1] // 2], [shape[0] // 2]])).abs().max() <= 0.5


@pytest.mark.parametrize("shape", [(15, 15), (15, 21)])
def test_stretch_adds_a_symmetric_traceless_matrix_with_a_random_axis(shape):
    (x_x, x_y), (y_x, y_y) = jacobian(sampled_positions(*shape, stretch=0.15), 5)
    torch.testing.assert_close(x_y, y_x, rtol=0, atol=1e-9)
    torch.testing.assert_close(x_x + y_y, torch.full_like(x_x, 2.0), rtol=0, atol=1e-9)
    strength = ((x_x - 1) ** 2 + x_y**2).sqrt().amax((1, 2))
    assert 0.145 < strength.max() <= 0.15
    angle = torch.atan2(x_y[:, 0, 0], x_x[:, 0, 0] - 1)
    assert torch.histc(angle, 8, -math.pi, math.pi).min() > 25  # 50 are expected in each of 8 directions


@pytest.mark.parametrize("shape", [(26, 26), (40, 30)])
def test_warp_has_its_mean_displacement_no_rotation_and_a_fixed_border(shape):
    positions = sampled_positions(*shape, warp=0.02)
    displacement = positions - sampled_positions(*shape)
    mean_squares = displacement.square().mean((1, 2, 3))
    assert mean_squares.mean().sqrt().item() == pytest.approx(0.02 * max(shape), rel=0.06)
    torch.testing.assert_close(mean_squares[0], mean_squares[1], rtol=0.35, atol=0)
    (_, x_y), (y_x, _) = jacobian(positions, 4)
    assert x_y.square().mean().sqrt() > 0.02
    assert (x_y - y_x).square().mean().sqrt() < 0.05 * x_y.square().mean().sqrt()  # interpolation error
    assert displacement[0, :, :, 0].abs().max() < 0.5
    assert displacement[1, :, -1].abs().max() < 0.5


def test_a_constant_image_stays_constant():
    images = torch.full((5, 1, 8, 9), 0.7)
    torch.testing.assert_close(deform(images, 0.5, 0.3, 0.2, 0.1), images)


def test_each_image_has_its_own_deformation_which_depends_on_the_seed():
    images = torch.rand(1, 1, 9, 9).expand(4, 1, 9, 9)
    first = deform(images, 0.5, 0.2, 0.1, 0.05)
    assert not torch.allclose(first[0], first[1])
    torch.manual_seed(1)
    second = deform(images, 0.5, 0.2, 0.1, 0.05)
    torch.manual_seed(1)
    assert torch.equal(deform(images, 0.5, 0.2, 0.1, 0.05), second)
    assert not torch.equal(first, second)
