"""The kernels compute the items of their range only; their values are compared with the reference elsewhere."""

import numpy as np
import torch

from tigranet.ops.cpu import statistics as kernels
from tigranet.ops.cpu.arrays import NO_MASK
from tigranet.ops.cpu.flat_grid import flat_grid
from tigranet.ops.grid_spec import GridSpec

S, LAYOUT, DIAGONAL = flat_grid(GridSpec(3, 4, 8, False, 1.0), torch.float32)
Z = np.random.default_rng(0).random((3, 12), np.float32)


def test_the_statistics_of_a_range_of_maps_and_their_gradients():
    phi = np.full((3, 3, 2), np.nan, np.float32)
    kernels.statistics(Z, NO_MASK, False, S, LAYOUT, DIAGONAL, 2, 1, 2, phi)
    assert np.isfinite(phi[1]).all()
    assert np.isnan(phi[[0, 2]]).all()
    np.testing.assert_allclose(phi[1, 0], [Z[1].mean(), Z[1].var()], rtol=1e-5)
    g_z, g = np.full(Z.shape, np.nan, np.float32), np.ones_like(phi)
    bits = np.empty(0, np.int32)
    kernels.statistics_backward(Z, NO_MASK, False, S, LAYOUT, DIAGONAL, 2, np.float32(0), phi, g, bits, 1, 2, g_z)
    assert np.isfinite(g_z[1]).all()
    assert np.isnan(g_z[[0, 2]]).all()
