"""The kernels compute the pixels of their range only; their values are compared with PyTorch's elsewhere."""

import numpy as np

from tigranet.ops.cpu import orientation_max as kernels

Y = np.random.default_rng(0).standard_normal((2 * 5, 4 * 3)).astype(np.float32)


def test_a_range_of_pixels_may_end_within_an_image():
    out = np.full((2, 3, 5), np.nan, np.float32)
    kernels.largest(Y, 4, 3, 7, out)
    by_pixel = out.transpose(0, 2, 1).reshape(10, 3)
    np.testing.assert_array_equal(by_pixel[3:7], Y[3:7].reshape(4, 4, 3).max(1))
    assert np.isnan(by_pixel[[0, 1, 2, 7, 8, 9]]).all()


def test_a_range_of_gradients():
    out = np.full(Y.shape, np.nan, np.float32)
    kernels.gradient(np.full((2, 3, 5), 2, np.float32), Y, 4, 3, 7, out)
    numbers = Y[3:7].reshape(4, 4, 3)
    np.testing.assert_array_equal(out[3:7].reshape(4, 4, 3), 2 * (numbers == numbers.max(1, keepdims=True)))
    assert np.isnan(out[[0, 1, 2, 7, 8, 9]]).all()
