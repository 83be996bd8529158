import numpy as np
import pytest
import torch

from tigranet.data.luminance import LUMINANCE_WEIGHTS, array_to_grey, luminance


def test_the_weights_are_those_of_bt_601_and_add_up_to_one():
    assert LUMINANCE_WEIGHTS == (0.299, 0.587, 0.114)
    assert sum(LUMINANCE_WEIGHTS) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_luminance_of_tensors_is_the_weighted_sum(dtype):
    red, green, blue = torch.rand(3, 4, 5, 6, dtype=dtype)
    grey = luminance(torch.stack([red, green, blue], 1))
    assert grey.shape == (4, 1, 5, 6)
    assert grey.dtype == dtype
    torch.testing.assert_close(grey[:, 0], 0.299 * red + 0.587 * green + 0.114 * blue)


@pytest.mark.parametrize("shape", [(5, 6), (4, 5, 6)])
def test_arrays_and_tensors_have_the_same_luminance(shape):
    pixels = np.random.default_rng(0).random((*shape, 3), dtype=np.float32)
    grey = array_to_grey(pixels)
    assert grey.shape == (*shape, 1)
    batch = torch.from_numpy(pixels.reshape(-1, 5, 6, 3)).permute(0, 3, 1, 2)
    torch.testing.assert_close(torch.from_numpy(grey.reshape(-1, 1, 5, 6)), luminance(batch))


def test_one_channel_stays_and_other_numbers_of_channels_become_their_mean():
    pixels = np.random.default_rng(0).random((5, 6, 4), dtype=np.float32)
    np.testing.assert_array_equal(array_to_grey(pixels[..., :1]), pixels[..., :1])
    for channels in (2, 4):
        expected = pixels[..., :channels].mean(-1, keepdims=True)
        np.testing.assert_array_equal(array_to_grey(pixels[..., :channels]), expected)
