"""The kernels compute the rows of their range only; their values are compared with the reference elsewhere."""

import numpy as np

from tigranet.ops.cpu import coarsening as kernels

ROWS = np.array([[0, 0, 1, 2], [1, 2, 3, 3]])
PAIRS = np.array([[0, 0], [0, 1], [0, 1], [1, 1]])
WEIGHTS = np.array([1 / 8, 3 / 8], np.float32)


def test_a_range_of_coarse_rows_is_computed():
    y, out = np.ones((2, 4, 4 * 3), np.float32), np.full((4, 2 * 3), np.nan, np.float32)
    kernels.coarsen(y, ROWS, ROWS, WEIGHTS, WEIGHTS, 3, 1, 3, out)
    assert np.isnan(out[[0, 3]]).all()
    np.testing.assert_array_equal(out[1:3], 1)


def test_a_range_of_fine_rows_of_the_gradient_is_computed():
    g, out = np.ones((2, 2, 2 * 3), np.float32), np.full((8, 4 * 3), np.nan, np.float32)
    halves = np.full((4, 2), 0.25, np.float32)
    kernels.coarsen_backward(g, PAIRS, PAIRS, halves, halves, 3, 3, 6, out)
    assert np.isnan(out[[0, 1, 2, 6, 7]]).all()
    np.testing.assert_array_equal(out[3:6], 0.25)
