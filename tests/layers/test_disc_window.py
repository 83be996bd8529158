import pytest
import torch

from tigranet.data.augment.rigid import rotate
from tigranet.layers.disc_window import disc, window_images, window_maps
from tigranet.testing import SQUARE


@pytest.mark.parametrize(("height", "width"), [(8, 8), (9, 9), (6, 10), (1, 5)])
def test_the_disc_is_symmetric_and_between_zero_and_one(height, width):
    window = disc(height, width, softness=2.0)
    assert window.min() >= 0
    assert window.max() <= 1
    torch.testing.assert_close(window, window.flip(0))
    torch.testing.assert_close(window, window.flip(1))
    torch.testing.assert_close(disc(width, height, softness=2.0), window.T)


def test_the_disc_is_that_of_the_smaller_side():
    window = disc(8, 20, softness=1.0)
    assert (window[:, :5] == 0).all()
    assert (window[3:5, 8:12] == 1).all()


def test_only_what_is_inside_the_disc_matters():
    window = disc(16, 16, softness=2.0)
    images = torch.rand(3, 2, 16, 16)
    changed = torch.where(window == 0, torch.rand(3, 2, 16, 16), images)
    torch.testing.assert_close(window_images(changed), window_images(images))
    torch.testing.assert_close(window_images(images)[..., window == 1], images[..., window == 1])


def test_the_corners_have_the_mean_colour_so_that_a_plain_image_stays_plain():
    image = torch.tensor([0.2, 0.9]).reshape(1, 2, 1, 1).expand(1, 2, 7, 7)
    torch.testing.assert_close(window_images(image), image)


def test_quarter_turns_and_reflections_commute_with_the_window():
    images = torch.rand(2, 3, 15, 15)
    for move in SQUARE.values():
        torch.testing.assert_close(window_images(move(images)), move(window_images(images)))


@pytest.mark.parametrize("padding", ["zeros", "reflection"])
def test_what_enters_at_the_corners_of_a_rotated_image_hardly_matters(padding):
    x = torch.linspace(-1, 1, 33)
    image = (torch.sin(3 * x[:, None] + 1) * torch.cos(2 * x[None, :]) / 2 + 0.5)[None, None]
    angle = torch.tensor([45.0])
    expected = rotate(window_images(image) - 0.5, angle) + 0.5
    inside = disc(33, 33, softness=2.0, reach=-2.0) == 1
    actual = window_images(rotate(image, angle, padding=padding))
    torch.testing.assert_close(actual[..., inside], expected[..., inside], atol=1e-4, rtol=0)


def test_maps_are_zero_outside_the_disc():
    z = window_maps(torch.ones(2, 3, 100), 10, 10).reshape(2, 3, 10, 10)
    assert z[0, 0, 0, 0] == 0
    assert z[0, 0, 5, 5] == 1
    assert z[0, 0, 0, 5] > 0.9


def test_the_window_has_the_dtype_of_the_images():
    assert window_images(torch.rand(1, 1, 5, 5, dtype=torch.float64)).dtype == torch.float64


@pytest.mark.parametrize(("height", "width"), [(1, 2), (1, 4), (2, 1), (1, 1)])
def test_images_without_a_pixel_inside_the_disc_stay_finite(height, width):
    assert window_images(torch.rand(2, 1, height, width)).isfinite().all()
