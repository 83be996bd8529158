"""Tones: that each pixel is changed by itself, along the curve that is claimed, and that nothing is moved."""

import math

import pytest
import torch

from tigranet.data.augment.photometric import tone


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def curve_of(images, seen):
    """Exposure and exponent of each image: log y is a straight line in log x."""
    x, y = images.log().flatten(1), seen.log().flatten(1)
    ends = x.argmin(1), x.argmax(1)
    (x0, x1), (y0, y1) = ([of[torch.arange(len(of)), end] for end in ends] for of in (x, y))
    exponent = (y1 - y0) / (x1 - x0)
    return (y0 - exponent * x0).exp(), exponent


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_image_has_an_exposure_and_an_exponent_of_its_own(dtype):
    images = torch.rand(500, 2, 5, 7, dtype=dtype) + 0.01
    seen = tone(images, 0.5)
    assert seen.dtype == dtype
    exposure, exponent = curve_of(images, seen)
    four = (slice(None), None, None, None)
    torch.testing.assert_close(seen, exposure[four] * images ** exponent[four], rtol=1e-3, atol=1e-5)
    for drawn in (exposure, exponent):
        assert math.exp(-0.5) - 1e-3 < drawn.min() < 0.62
        assert 1.62 < drawn.max() < math.exp(0.5) + 1e-3
        assert abs(drawn.log().mean()) < 0.05
    assert abs(torch.corrcoef(torch.stack([exposure, exponent]))[0, 1]) < 0.15


@pytest.mark.parametrize(
    "move", [lambda x: torch.rot90(x, 1, (2, 3)), lambda x: x.roll((2, 3), (2, 3)), lambda x: x.flip(3)]
)
def test_whatever_is_done_before_or_after_the_outcome_is_the_same(move):
    images = torch.randn(1, 3, 6, 9)
    torch.manual_seed(1)
    after = move(tone(images, 0.7))
    torch.manual_seed(1)
    torch.testing.assert_close(tone(move(images), 0.7), after, rtol=0, atol=0)


def test_black_stays_black_and_light_stays_in_its_order():
    images = torch.linspace(0, 1, 12).reshape(1, 1, 3, 4).expand(50, 1, 3, 4)
    seen = tone(images, 1.0).flatten(1)
    assert (seen[:, 0] == 0).all()
    assert (seen.diff(dim=1) > 0).all()


def test_values_below_zero_are_the_mirror_images_of_those_above():
    images = torch.randn(4, 1, 5, 5)
    torch.manual_seed(1)
    above = tone(images, 0.5)
    torch.manual_seed(1)
    torch.testing.assert_close(tone(-images, 0.5), -above)


def test_no_strength_no_change():
    images = torch.randn(3, 2, 4, 4)
    torch.testing.assert_close(tone(images, 0.0), images)
