"""The kernels compute the pieces of their range only, and the last piece ends with the last signal."""

import numpy as np
import pytest
import torch

from tigranet.ops.cpu import torus_spectrum as kernels
from tigranet.ops.cpu.arrays import PIECE_BYTES
from tigranet.ops.torus_frequencies import axis

HEIGHT, WIDTH = 5, 8
ROWS, COLUMNS = axis(HEIGHT, torch.float32), axis(WIDTH, torch.float32)
ORDER = np.random.default_rng(0).permutation(HEIGHT * WIDTH)
PIECE = PIECE_BYTES // 4


@pytest.mark.parametrize(("first", "last", "computed"), [(0, 1, range(PIECE)), (1, 3, range(PIECE, 2 * PIECE + 3))])
def test_a_range_of_pieces(first, last, computed):
    count = 2 * PIECE + 3
    if last == 3:
        computed = range(min(PIECE, count - PIECE), count)
    signals = np.random.default_rng(1).standard_normal((count, HEIGHT * WIDTH)).astype(np.float32)
    spectrum = np.full((HEIGHT * WIDTH, count), np.nan, np.float32)
    matrices = HEIGHT, WIDTH, ROWS.blocks, ROWS.sizes, COLUMNS.blocks, COLUMNS.sizes, ORDER
    kernels.to_spectrum(signals.ravel(), *matrices, first, last, spectrum.ravel())
    assert np.flatnonzero(np.isfinite(spectrum).all(0)).tolist() == list(computed)
    assert np.isnan(spectrum).all(0).sum() == count - len(computed)
    np.testing.assert_allclose(  # the basis is orthonormal
        np.square(spectrum[:, computed]).sum(0), np.square(signals[computed]).sum(1), rtol=1e-5
    )
    restored = np.full_like(signals, np.nan)
    matrices = HEIGHT, WIDTH, ROWS.transposed, ROWS.sizes, COLUMNS.transposed, COLUMNS.sizes, ORDER
    kernels.from_spectrum(spectrum.ravel(), *matrices, first, last, restored.ravel())
    np.testing.assert_allclose(restored[computed], signals[computed], atol=1e-5)
    assert np.isnan(restored).all(1).sum() == count - len(computed)


def test_a_constant_map_has_one_coefficient():
    signals, spectrum = np.ones((PIECE, HEIGHT * WIDTH), np.float32), np.empty((HEIGHT * WIDTH, PIECE), np.float32)
    matrices = HEIGHT, WIDTH, ROWS.blocks, ROWS.sizes, COLUMNS.blocks, COLUMNS.sizes, ORDER
    kernels.to_spectrum(signals.ravel(), *matrices, 0, 1, spectrum.ravel())
    expected = np.zeros_like(spectrum)
    expected[ORDER[0]] = (HEIGHT * WIDTH) ** 0.5
    np.testing.assert_allclose(spectrum, expected, atol=1e-6)
