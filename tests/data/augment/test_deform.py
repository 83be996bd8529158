"""Deformed images: what is done to ramps, whose values say where each pixel was read."""

import math

import pytest
import torch

from tigranet.data.augment.deform import deform


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def where_read(height, width, count=400, **how):
    """The column and the row that each pixel is read at, (2, count, height, width)."""
    down, right = torch.meshgrid(
        torch.arange(height, dtype=torch.float64), torch.arange(width, dtype=torch.float64), indexing="ij"
    )
    ramps = torch.stack([right, down]).expand(count, 2, height, width)
    return deform(ramps, **how).transpose(0, 1)


def derivative(read, border):
    """The Jacobian of where pixels are read, away from the border: [[x_x, x_y], [y_x, y_y]]."""
    inner = slice(border, -border)
    return [
        [torch.gradient(of, dim=axis)[0][:, inner, inner] for axis in (2, 1)]
        for of in read
    ]  # fmt: skip


def test_nothing_asked_nothing_done():
    images = torch.rand(3, 2, 7, 9, dtype=torch.float64)
    torch.testing.assert_close(deform(images), images)


@pytest.mark.parametrize("shape", [(15, 15), (15, 21)])
def test_a_zoom_is_the_same_along_both_axes_and_about_the_centre(shape):
    (x_x, x_y), (y_x, y_y) = derivative(where_read(*shape, reach=0.5, zoom=0.2), 4)
    torch.testing.assert_close(x_x, y_y, rtol=0, atol=1e-9)
    assert max(x_y.abs().max(), y_x.abs().max()) < 1e-9
    assert 0.8 <= x_x.min() < 0.82
    assert 1.18 < x_x.max() <= 1.2
    middle = where_read(*shape, reach=0.5, zoom=0.2)[:, :, shape[0] // 2, shape[1] // 2]
    assert (middle - torch.tensor([[shape[1] // 2], [shape[0] // 2]])).abs().max() <= 0.5


@pytest.mark.parametrize("shape", [(15, 15), (15, 21)])
def test_a_stretch_is_a_symmetric_matrix_without_trace_along_every_axis(shape):
    (x_x, x_y), (y_x, y_y) = derivative(where_read(*shape, stretch=0.15), 5)
    torch.testing.assert_close(x_y, y_x, rtol=0, atol=1e-9)
    torch.testing.assert_close(x_x + y_y, torch.full_like(x_x, 2.0), rtol=0, atol=1e-9)
    size = ((x_x - 1) ** 2 + x_y**2).sqrt().amax((1, 2))
    assert 0.145 < size.max() <= 0.15
    angle = torch.atan2(x_y[:, 0, 0], x_x[:, 0, 0] - 1)
    assert torch.histc(angle, 8, -math.pi, math.pi).min() > 25  # of 400 in 8 directions


@pytest.mark.parametrize("shape", [(26, 26), (40, 30)])
def test_a_warp_moves_by_what_it_says_turns_nothing_and_stays_inside(shape):
    read = where_read(*shape, warp=0.02)
    still = where_read(*shape)
    square = (read - still).square().mean((1, 2, 3))
    assert square.mean().sqrt().item() == pytest.approx(0.02 * max(shape), rel=0.06)
    torch.testing.assert_close(square[0], square[1], rtol=0.35, atol=0)
    (_, x_y), (y_x, _) = derivative(read, 4)
    assert x_y.square().mean().sqrt() > 0.02
    assert (x_y - y_x).square().mean().sqrt() < 0.05 * x_y.square().mean().sqrt()  # but for interpolation
    assert (read - still)[0, :, :, 0].abs().max() < 0.5
    assert (read - still)[1, :, -1].abs().max() < 0.5


def test_an_image_that_is_the_same_everywhere_stays_so():
    images = torch.full((5, 1, 8, 9), 0.7)
    torch.testing.assert_close(deform(images, 0.5, 0.3, 0.2, 0.1), images)


def test_each_image_has_its_own_and_the_seed_decides():
    images = torch.rand(1, 1, 9, 9).expand(4, 1, 9, 9)
    first = deform(images, 0.5, 0.2, 0.1, 0.05)
    assert not torch.allclose(first[0], first[1])
    torch.manual_seed(1)
    again = deform(images, 0.5, 0.2, 0.1, 0.05)
    torch.manual_seed(1)
    assert torch.equal(deform(images, 0.5, 0.2, 0.1, 0.05), again)
