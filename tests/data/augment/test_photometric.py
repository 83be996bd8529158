"""Changes of tone and tint act on each pixel separately, along the documented curves, and move nothing."""

import math

import pytest
import torch

from tigranet.data.augment.photometric import tint, tone


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def fitted_curve(images, changed):
    """Return exposure and exponent of each image, from the straight line of log y over log x."""
    x, y = images.log().flatten(1), changed.log().flatten(1)
    ends = x.argmin(1), x.argmax(1)
    (x0, x1), (y0, y1) = ([values[torch.arange(len(values)), end] for end in ends] for values in (x, y))
    exponent = (y1 - y0) / (x1 - x0)
    return (y0 - exponent * x0).exp(), exponent


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_image_has_its_own_exposure_and_exponent(dtype):
    images = torch.rand(500, 2, 5, 7, dtype=dtype) + 0.01
    changed = tone(images, 0.5)
    assert changed.dtype == dtype
    exposure, exponent = fitted_curve(images, changed)
    per_image = (slice(None), None, None, None)
    torch.testing.assert_close(changed, exposure[per_image] * images ** exponent[per_image], rtol=1e-3, atol=1e-5)
    for values in (exposure, exponent):
        assert math.exp(-0.5) - 1e-3 < values.min() < 0.62
        assert 1.62 < values.max() < math.exp(0.5) + 1e-3
        assert abs(values.log().mean()) < 0.05
    assert abs(torch.corrcoef(torch.stack([exposure, exponent]))[0, 1]) < 0.15


@pytest.mark.parametrize(
    "move", [lambda x: torch.rot90(x, 1, (2, 3)), lambda x: x.roll((2, 3), (2, 3)), lambda x: x.flip(3)]
)
def test_tone_commutes_with_movements_of_pixels(move):
    images = torch.randn(1, 3, 6, 9)
    torch.manual_seed(1)
    after = move(tone(images, 0.7))
    torch.manual_seed(1)
    torch.testing.assert_close(tone(move(images), 0.7), after, rtol=0, atol=0)


def test_black_stays_black_and_the_order_of_brightness_is_kept():
    images = torch.linspace(0, 1, 12).reshape(1, 1, 3, 4).expand(50, 1, 3, 4)
    changed = tone(images, 1.0).flatten(1)
    assert (changed[:, 0] == 0).all()
    assert (changed.diff(dim=1) > 0).all()


def test_tone_is_an_odd_function():
    images = torch.randn(4, 1, 5, 5)
    torch.manual_seed(1)
    changed = tone(images, 0.5)
    torch.manual_seed(1)
    torch.testing.assert_close(tone(-images, 0.5), -changed)


def test_strength_zero_changes_nothing():
    images = torch.randn(3, 2, 4, 4)
    torch.testing.assert_close(tone(images, 0.0), images)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("maps", [1, 3])
def test_a_tint_adds_one_number_to_each_channel_of_each_image(maps, dtype):
    images = torch.rand(500, maps, 5, 7, dtype=dtype)
    difference = tint(images, 0.2) - images
    assert difference.dtype == dtype
    offsets = difference.mean((2, 3), keepdim=True)
    torch.testing.assert_close(difference, offsets.expand_as(images), rtol=0, atol=1e-6)
    assert len(set(offsets.flatten().tolist())) > 0.99 * 500 * maps
    assert -0.2 - 1e-6 < offsets.min() < -0.19
    assert 0.19 < offsets.max() < 0.2 + 1e-6
    assert offsets.mean().abs() < 0.02


@pytest.mark.parametrize(
    "move", [lambda x: torch.rot90(x, 1, (2, 3)), lambda x: x.roll((2, 3), (2, 3)), lambda x: x.flip(3)]
)
def test_a_tint_commutes_with_movements_of_pixels(move):
    images = torch.randn(4, 3, 6, 9)
    torch.manual_seed(1)
    after = move(tint(images, 0.7))
    torch.manual_seed(1)
    assert torch.equal(tint(move(images), 0.7), after)
