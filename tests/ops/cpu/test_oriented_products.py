"""The kernels compute the items of their range only; their values are compared with the reference elsewhere."""

import numpy as np
import torch

from tigranet.ops.cpu import oriented_products as kernels
from tigranet.ops.cpu.flat_grid import flat_grid
from tigranet.ops.grid_spec import GridSpec

_, LAYOUT, _ = flat_grid(GridSpec(3, 4, 8, False, 1.0), torch.float32)
MIXTURES = np.ones((2, 2, 3, 12), np.float32)  # two images, f and g, three pairs


def test_the_products_of_a_range_of_pairs():
    out = np.full((2, 4, 3, 12), np.nan, np.float32)
    kernels.oriented_products(MIXTURES, LAYOUT, 4, 2, 4, out)
    assert np.isfinite(out).all((1, 3)).tolist() == [[False, False, True], [True, False, False]]
    assert np.isnan(out).all((1, 3)).tolist() == [[True, True, False], [False, True, True]]


def test_the_gradients_of_a_range_of_pairs():
    out = np.full(MIXTURES.shape, np.nan, np.float32)
    kernels.oriented_products_backward(np.ones((2, 4, 3, 12), np.float32), MIXTURES, LAYOUT, 4, 2, 4, out)
    assert np.isfinite(out).all((1, 3)).tolist() == [[False, False, True], [True, False, False]]
    assert np.isnan(out).all((1, 3)).tolist() == [[True, True, False], [False, True, True]]
