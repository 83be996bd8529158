"""Folding and small matrices together are the Fourier basis of an axis, and unfolding is their transpose."""

from typing import no_type_check

import numpy as np
import pytest
import torch

from tigranet.ops.cpu.arrays import PIECE_BYTES
from tigranet.ops.cpu.compile import kernel
from tigranet.ops.cpu.real_fourier import fold, multiply_blocks, unfold
from tigranet.ops.torus_frequencies import axis

PIECE = PIECE_BYTES // 8  # numbers of type float64


@kernel
@no_type_check
def transform(blocks, sizes, x, at, step, n, folded, out, places):
    fold(x, at, step, n, folded)
    multiply_blocks(blocks, sizes, folded, at - at, out, places)


@kernel
@no_type_check
def transform_back(transposed, sizes, coefficients, at, folded, places, n, x, step):
    multiply_blocks(transposed, sizes, coefficients, at, folded, places)
    unfold(folded, n, x, at, step)


def basis(n):
    """Return the cosines and sines of an axis, in the order of the coefficients of an axis."""
    rows, kind = [], 0
    frequencies = axis(n, torch.float64).frequencies
    for i, k in enumerate(frequencies):
        is_sine = i > n // 2  # the cosines come first
        kind = np.sin if is_sine else np.cos
        rows.append(kind(2 * np.pi * k * np.arange(n) / n))
    rows = np.array(rows)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("n", [*range(3, 21), 33, 34, 64])
def test_an_axis_is_transformed_and_restored(n):
    expected, (_, blocks, transposed, sizes) = basis(n), axis(n, torch.float64)
    np.testing.assert_allclose(expected @ expected.T, np.eye(n), atol=1e-12)
    step, at = PIECE + 3, 5
    x = np.random.default_rng(n).standard_normal(at + n * step)
    signals = x[at:].reshape(n, step)[:, :PIECE]
    places = np.random.default_rng(n).permutation(n) * PIECE
    folded, out = np.empty(n * PIECE), np.empty(n * PIECE)
    transform(blocks, sizes, x, at, step, n, folded, out, places)
    coefficients = out.reshape(n, PIECE)[places // PIECE]
    np.testing.assert_allclose(coefficients, expected @ signals, atol=1e-12)
    restored = np.full_like(x, np.nan)
    padded = np.concatenate((np.zeros(at), coefficients.ravel()))
    transform_back(transposed, sizes, padded, at, folded, np.arange(n) * PIECE, n, restored, step)
    np.testing.assert_allclose(restored[at:].reshape(n, step)[:, :PIECE], signals, atol=1e-12)
    assert np.isnan(restored[at:].reshape(n, step)[:, PIECE:]).all()
