"""Smoothing commutes with all symmetries of the grid, and half of the images are blended with their smoothed copies."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from tigranet.data.augment.blur import blur, smooth

SHAPES = [(1, 1), (1, 5), (2, 2), (7, 4), (9, 9)]


@pytest.mark.parametrize("maps", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_smoothing_is_the_separable_filter_of_scipy(shape, maps):
    images = torch.rand(2, maps, *shape, dtype=torch.float64)
    taps = np.array([1, 2, 1]) / 4
    expected = ndimage.convolve1d(ndimage.convolve1d(images, taps, 2, mode="nearest"), taps, 3, mode="nearest")
    torch.testing.assert_close(smooth(images), torch.from_numpy(expected))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_blur_commutes_with_quarter_turns_and_mirror_images(shape, dtype):
    images = torch.rand(6, 3, *shape, dtype=dtype)
    for turns in range(4):
        for axes in ((), (3,)):
            moved = torch.rot90(images.flip(axes), turns, (2, 3))
            torch.manual_seed(1)
            expected = torch.rot90(blur(images, 0.8).flip(axes), turns, (2, 3))
            torch.manual_seed(1)
            torch.testing.assert_close(blur(moved, 0.8), expected, rtol=0, atol=1e-6)
            assert expected.dtype == dtype


def test_half_of_the_images_are_blended_with_a_uniform_weight():
    images = torch.rand(1, 2, 5, 6, dtype=torch.float64).expand(2000, 2, 5, 6)
    difference, whole = (blur(images, 0.6) - images).flatten(1), (smooth(images) - images).flatten(1)
    weights = (difference * whole).sum(1) / whole.square().sum(1)
    torch.testing.assert_close(difference, weights[:, None] * whole)
    is_blended = weights != 0
    assert 0.45 < is_blended.double().mean() < 0.55
    assert weights.min() == 0
    assert 0.58 < weights.max() <= 0.6
    assert torch.histc(weights[is_blended], 6, 0, 0.6).min() > 110  # about 170 are expected in each


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1.0])
def test_images_of_one_colour_do_not_change(value):
    images = torch.full((4, 1, 5, 7), value)
    assert torch.equal(blur(images, 1.0), images)
