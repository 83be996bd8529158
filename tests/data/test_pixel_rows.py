import numpy as np
import pytest

from tigranet.data import pixel_rows
from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.pixel_rows import PixelRows, strip_bytes, unit_strips

RNG = np.random.default_rng(0)


def rows_of(pixels, has_alpha=False):
    height, width, channels = pixels.shape
    return PixelRows(height, width, channels - has_alpha, lambda start, stop: pixels[start:stop], has_alpha)


def whole(pixels, **options):
    return np.concatenate(list(unit_strips(rows_of(pixels, **options), color=True)))


@pytest.mark.parametrize("has_alpha", [False, True])
@pytest.mark.parametrize("kind", ["u1", "i2", "u4", "f2", "f4", "f8", "?"])
def test_strips_of_any_height_give_the_same_bits_as_the_whole(monkeypatch, kind, has_alpha):
    pixels = (RNG.random((13, 5, 4)) * 90).astype(kind)
    results = []
    for num_values in (1, 37, 10**6):
        monkeypatch.setattr(pixel_rows, "STRIP_VALUES", num_values)
        results.append(whole(pixels, has_alpha=has_alpha))
    assert results[0].dtype == np.float32
    assert results[0].shape == (13, 5, 4 - has_alpha)
    for result in results[:2]:
        np.testing.assert_array_equal(result, results[2])


def test_some_channels_are_those_of_the_whole():
    pixels = RNG.random((6, 5, 4)) * 7 - 3  # scaled by the range of all channels
    parts = [np.concatenate(list(unit_strips(rows_of(pixels), True, slice(k, k + 1)))) for k in range(4)]
    np.testing.assert_array_equal(np.dstack(parts), whole(pixels))


@pytest.mark.parametrize(
    ("pixels", "reason"),
    [
        (np.zeros((0, 5, 1)), "no pixels: 0 x 5"),
        (np.zeros((5, 0, 1)), "no pixels: 5 x 0"),
        (np.zeros((5, 5, 0)), "channels: 0"),
        (np.zeros((2, 2, 1), complex), "complex"),
        (np.zeros((2, 2, 1), "i4,i4"), "real numbers"),
        (np.full((2, 2, 1), 1e300), "float32"),
        (np.array([[[1.0], [np.inf]]]), "infinity"),
        (np.array([[[-3e38], [3e38]]]), "too far apart"),
        (np.array([[[-1], [3]]]), "from -1 to 3"),
    ],
)
def test_pixels_that_cannot_be_scaled_are_refused(pixels, reason):
    with pytest.raises(UnreadableImageError, match=reason):
        whole(pixels)


def test_the_memory_of_a_strip_grows_with_rows_that_are_longer_than_a_strip():
    assert strip_bytes(10, 3) == strip_bytes(100, 1) < strip_bytes(10**7, 1) < strip_bytes(10**7, 3)
