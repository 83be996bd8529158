"""The background of images, compared with NumPy on the border pixels."""

import numpy as np
import pytest
import torch

from tigranet.data.augment.background import background_of


def border_pixels(image):
    """Return the border of one channel as a list: every pixel with a neighbour outside the image, once."""
    height, width = image.shape
    return [
        image[row, column].item()
        for row in range(height)
        for column in range(width)
        if row in (0, height - 1) or column in (0, width - 1)
    ]


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 2), (2, 5), (3, 3), (7, 4), (28, 28)])
def test_the_value_is_the_median_of_the_border(shape):
    images = torch.rand(3, 2, *shape, dtype=torch.float64)
    expected = [[np.median(border_pixels(channel)) for channel in image] for image in images]
    value = background_of(images).value
    assert value.shape == (3, 2, 1, 1)
    torch.testing.assert_close(value[..., 0, 0], torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_an_object_that_covers_less_than_half_of_the_border_does_not_hide_the_background(value):
    images = torch.full((1, 1, 8, 8), value)
    images[..., 2:6, 4:] = 0.6
    images[..., 3, 0] = 0.7
    background = background_of(images)
    assert background.is_uniform.all()
    assert background.value.item() == pytest.approx(value)


def test_photographs_and_images_with_half_of_the_border_covered_have_no_background():
    photographs = torch.rand(20, 1, 9, 9)
    halves = torch.zeros(1, 1, 9, 8)
    halves[..., 4:] = 1
    assert not background_of(photographs).is_uniform.any()
    assert not background_of(halves).is_uniform.any()


def test_a_pixel_of_the_background_agrees_in_all_channels():
    """Each channel is uniform along more than half of the border, but both together are not."""
    images = torch.zeros(1, 2, 10, 10)
    images[:, 0, :, :4] = 1
    assert background_of(images).is_uniform.all()
    images[:, 1, :, 6:] = 1
    assert not background_of(images).is_uniform.any()


def test_inverted_images_have_the_inverted_background():
    images = (torch.rand(50, 1, 6, 7) * 2).floor() * 0.75
    plain, inverted = background_of(images), background_of(1 - images)
    assert 0 < plain.is_uniform.sum() < 50
    assert torch.equal(plain.is_uniform, inverted.is_uniform)
    torch.testing.assert_close(inverted.value, 1 - plain.value)


def test_other_values_replace_a_background_that_is_missing():
    images = torch.rand(2, 1, 5, 5)
    images[0] = 0.25
    values = background_of(images).or_else(images)
    assert torch.equal(values[0], torch.full((1, 5, 5), 0.25))
    assert torch.equal(values[1], images[1])
