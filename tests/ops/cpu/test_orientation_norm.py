"""The kernels compute the items of their range only; their values are compared with the reference elsewhere."""

import numpy as np

from tigranet.ops.cpu import orientation_norm as kernels

HEIGHT, WIDTH, MAPS, FEATURES = 20, 3, 4, 2
Y = np.random.default_rng(0).standard_normal((2 * HEIGHT, WIDTH * MAPS)).astype(np.float32)
ZEROS, ONES = np.zeros(WIDTH * MAPS, np.float32), np.ones(WIDTH * MAPS, np.float32)
BLOCKS = -(-len(Y) // kernels.ROWS_PER_BLOCK)


def nan(*shape, dtype=np.float32):
    return np.full(shape, np.nan, dtype)


def test_the_sums_of_a_range_of_blocks():
    sums = nan(BLOCKS, 2, FEATURES, dtype=np.float64)
    kernels.moments(Y, ONES, FEATURES, 1, BLOCKS, sums)
    assert np.isnan(sums[0]).all()
    columns = Y[kernels.ROWS_PER_BLOCK :].astype(np.float64).reshape(-1, FEATURES) - 1
    np.testing.assert_allclose(sums[1:].sum(0), [columns.sum(0), (columns**2).sum(0)], rtol=1e-5, atol=1e-4)


def test_a_range_of_padded_rows_is_rectified():
    out = nan(2 * (HEIGHT + 2), (WIDTH + 2) * MAPS)
    kernels.rectify(Y, ONES, ZEROS, HEIGHT, MAPS, 1, False, False, 21, 24, out)
    assert np.isnan(out[:21]).all()
    assert np.isnan(out[24:]).all()
    expected = np.pad(Y[[19, 20, 20]].clip(0).reshape(3, WIDTH, MAPS), ((0, 0), (1, 1), (0, 0)), mode="edge")
    np.testing.assert_array_equal(out[21:24], expected.reshape(3, -1))  # the last row of one image, two of the next


def test_the_gradients_of_a_range():
    g = np.ones((2, HEIGHT, WIDTH * MAPS), np.float32)
    geometry = HEIGHT, MAPS, 0, False, False
    sums, out = nan(BLOCKS, 2, FEATURES, dtype=np.float64), nan(*Y.shape)
    kernels.gradient_sums(g, Y, ONES, ZEROS, ZEROS, *geometry, FEATURES, 0, 1, sums)
    assert np.isnan(sums[1:]).all()
    positive = Y[: kernels.ROWS_PER_BLOCK].clip(0).astype(np.float64).reshape(-1, FEATURES)
    np.testing.assert_allclose(sums[0], [(positive > 0).sum(0), positive.sum(0)], rtol=1e-5)
    kernels.gradient(g, Y, ONES, ZEROS, ZEROS, ZEROS, ZEROS, *geometry, 5, 25, out)
    assert np.isnan(out[:5]).all()
    assert np.isnan(out[25:]).all()
    np.testing.assert_array_equal(out[5:25], Y[5:25] > 0)
