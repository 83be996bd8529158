"""Pieces of the compiled CPU code that no operator shows by itself."""

import numpy as np
import pytest
import torch

from tigranet import GridLaplacian
from tigranet.ops import cpu
from tigranet.ops.grid_spec import describe, flat
from tigranet.polynomials import chebyshev


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_a_step_of_the_recursion_is_the_plain_one_to_the_bit(boundary):
    grid = GridLaplacian(5, 6, boundary=boundary)
    s, measures, diagonal = flat(describe(grid), torch.float32)
    z = torch.randn(30)
    t, p, nothing = np.zeros((3, len(s)), np.float32), np.zeros((2, len(s)), np.float32), np.zeros(len(s), np.float32)
    cpu._load(z.numpy(), np.empty(0, np.uint8), False, s, measures, np.empty(30, np.float32), t[0], p[0])
    one, lo, hi = np.float32(1), measures[2] + 1, 5 * measures[2] + 1 + 6
    cpu._recur(p[0], s, nothing, one, one, measures, diagonal, t[1], p[1], lo, hi)
    cpu._wrap(p[1], measures)
    cpu._recur(p[1], s, t[0], one + one, -one, measures, diagonal, t[2], p[0], lo, hi)
    for came, wanted in zip(t, chebyshev(z, grid, 2), strict=True):
        dense = np.empty(30, np.float32)
        cpu._gather(dense, came, measures)
        assert torch.equal(torch.from_numpy(dense), wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_jth_largest_is_what_sorting_finds(dtype):
    rng = np.random.default_rng(0)
    for values in (rng.standard_normal(100), rng.integers(-3, 3, 100), np.full(100, -2.0)):
        bits = values.astype(dtype).view(np.int32 if dtype == np.float32 else np.int64)
        keys = np.empty_like(bits)
        cpu._order(bits, np.empty(0, np.uint8), False, keys)
        assert (np.argsort(keys, kind="stable") == np.argsort(values.astype(dtype), kind="stable")).all()
        for j in (1, 2, 50, 99, 100):
            assert cpu._jth(keys, j) == np.sort(keys)[-j]
