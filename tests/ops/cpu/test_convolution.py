"""The kernels compute the items of their range only; their values are compared with the reference elsewhere."""

import numpy as np
import torch

from tigranet.ops.cpu import convolution as kernels
from tigranet.ops.cpu.arrays import NO_MASK
from tigranet.ops.cpu.flat_grid import flat_grid
from tigranet.ops.grid_spec import GridSpec

S, LAYOUT, DIAGONAL = flat_grid(GridSpec(3, 4, 8, False, 1.0), torch.float32)
Y, ALPHA, BETA = np.ones((3, 2, 12), np.float32), np.ones((4, 3), np.float32), np.ones(2, np.float32)


def test_the_maps_of_a_range_of_images():
    z = np.full((3, 4, 12), np.nan, np.float32)
    kernels.convolution(Y, ALPHA, BETA, NO_MASK, False, S, LAYOUT, DIAGONAL, 1, 2, z)
    assert np.isfinite(z).all((1, 2)).tolist() == [False, True, False]
    assert np.isnan(z).all((1, 2)).tolist() == [True, False, True]


def test_the_gradients_of_a_range_of_images():
    g, g_y = np.ones((3, 4, 12), np.float32), np.full(Y.shape, np.nan, np.float32)
    g_alpha, g_beta = np.full((3, 4, 3), np.nan, np.float32), np.full((3, 2), np.nan, np.float32)
    kernels.convolution_backward(
        g, Y, ALPHA, BETA, NO_MASK, False, S, LAYOUT, DIAGONAL, True, 1, 2, g_y, g_alpha, g_beta
    )
    for gradient in (g_y, g_alpha, g_beta):
        assert np.isfinite(gradient[1]).all()
        assert np.isnan(gradient[[0, 2]]).all()
