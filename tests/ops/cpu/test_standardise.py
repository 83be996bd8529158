"""The kernels compute the items of their range only; their values are compared with the reference elsewhere."""

import numpy as np

from tigranet.ops.cpu import standardise as kernels

Z = np.random.default_rng(0).random((2, 3, 5), np.float32)
ZEROS, ONES, NO_MAPS = np.zeros(3, np.float32), np.ones(3, np.float32), Z[:, :0].copy()


def nan(*shape):
    return np.full(shape, np.nan, np.float32)


def test_a_range_of_maps_is_standardised_by_its_own_moments():
    mean, variance, out = nan(3), nan(3), nan(2, 3, 5)
    kernels.standardise(Z, ZEROS, False, NO_MAPS, 1e-5, 0, 1, 2, mean, variance, out)
    assert np.isfinite(out[:, 1]).all()
    assert np.isnan(out[:, [0, 2]]).all()
    np.testing.assert_allclose(mean[1], Z[:, 1].mean(), rtol=1e-6)
    np.testing.assert_allclose(variance[1], Z[:, 1].var(), rtol=1e-5)
    assert np.isnan(mean[[0, 2]]).all()


def test_the_gradients_of_a_range_of_maps():
    g_z, g_bias = nan(2, 3, 5), nan(3)
    g = np.ones((6, 5), np.float32)
    kernels.standardise_backward(g, 3, Z, ZEROS, ONES, ZEROS, True, 1e-5, 0, 1, 2, g_z, g_bias)
    assert np.isfinite(g_z[:, 1]).all()
    assert np.isnan(g_z[:, [0, 2]]).all()
    assert g_bias[1] == (Z[:, 1] > 0).sum()
    assert np.isnan(g_bias[[0, 2]]).all()


def test_a_range_of_maps_of_all_images_is_standardised_by_known_moments():
    rectified, compressed = nan(2, 3, 5), nan(2, 3, 5)
    kernels.rectified_eval(Z, ZEROS, ONES, 0.0, -ONES, 2, 4, rectified)
    kernels.compressed_eval(Z, ZEROS, ONES, 0.0, 0, NO_MAPS, 2, 4, compressed)
    for out in (rectified, compressed):
        assert np.isfinite(out).all(2).tolist() == [[False, False, True], [True, False, False]]
    assert (rectified[0, 2] == 0).all()  # all values are below 1
    np.testing.assert_array_equal(compressed[0, 2], Z[0, 2])  # nothing is compressed
