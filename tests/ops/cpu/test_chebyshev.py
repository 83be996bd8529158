"""The kernels compute the items of their range only; their values are compared with the reference elsewhere."""

import numpy as np
import torch

from tigranet.ops.cpu import chebyshev as kernels
from tigranet.ops.cpu.flat_grid import flat_grid
from tigranet.ops.grid_spec import GridSpec

S, LAYOUT, DIAGONAL = flat_grid(GridSpec(3, 4, 8, False, 1.0), torch.float32)


def test_the_basis_of_a_range_of_maps():
    out = np.full((2, 3, 2, 12), np.nan, np.float32)  # two images, orders 0 to 2, two maps
    kernels.chebyshev_basis(np.ones((4, 12), np.float32), S, LAYOUT, DIAGONAL, 2, 1, 3, out)
    assert np.isfinite(out).all((1, 3)).tolist() == [[False, True], [True, False]]
    assert np.isnan(out).all((1, 3)).tolist() == [[True, False], [False, True]]


def test_the_sum_of_a_range_of_maps():
    out = np.full((4, 12), np.nan, np.float32)
    kernels.chebyshev_sum(np.ones((2, 3, 2, 12), np.float32), S, LAYOUT, DIAGONAL, 2, 1, 3, out)
    assert np.isfinite(out).all(1).tolist() == [False, True, True, False]
    assert np.isnan(out).all(1).tolist() == [True, False, False, True]
