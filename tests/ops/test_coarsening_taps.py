"""The tables of the coarsening are the rows and the columns of one matrix, whose rows sum to 1."""

import numpy as np
import pytest

from tigranet.ops.coarsening_taps import taps, transposed_taps


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 13])
def test_both_tables_describe_the_same_matrix(length, wraps):
    positions, (outer, inner) = taps(length, wraps)
    forward = np.zeros((len(positions), length))
    for coarse, fine in enumerate(positions):
        np.add.at(forward[coarse], fine, (outer, inner, inner, outer))
    backward = np.zeros_like(forward)
    for fine, (coarse, weights) in enumerate(zip(*transposed_taps(length, wraps), strict=True)):
        np.add.at(backward[:, fine], coarse, weights)
    np.testing.assert_array_equal(forward, backward)
    np.testing.assert_allclose(forward.sum(1), 1)
    if not wraps:
        np.testing.assert_array_equal(forward[::-1, ::-1], forward)  # symmetric about the centre
