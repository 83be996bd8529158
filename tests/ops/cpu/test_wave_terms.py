"""The terms at a vector of pixels are the sums over the pixels of the filters, and their gradient is the transpose."""

from typing import no_type_check

import numpy as np
import pytest

from tigranet.circular_harmonics import circular_harmonics
from tigranet.ops.cpu.arrays import VECTOR_BYTES
from tigranet.ops.cpu.compile import kernel
from tigranet.ops.cpu.wave_terms import add_gradient_at_pixels, terms_at_pixels
from tigranet.ops.orientation_frequencies import ORIENTATIONS, SIZES, terms

WIDTH, LINES, FEATURES, FEATURE = 7, 12, 3, 1
LENGTH, START = WIDTH * LINES, 4 * WIDTH + 2
PLANE_STEP = LENGTH + 6
PANEL, OFFSET = 21, 2
"""Terms are stored at a distance of PANEL numbers, from the place OFFSET on."""
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-13}


def lanes_of(dtype):
    return VECTOR_BYTES // np.dtype(dtype).itemsize


def term_matrix(size, lanes):
    """Return the matrix from the planes to the terms at some pixels, (terms, lanes, components, pixels)."""
    basis, reach = circular_harmonics(size, ORIENTATIONS)[0], size // 2
    all_terms = [term for of_frequency in terms(size) for term in of_frequency]
    matrix, places = np.zeros((len(all_terms), lanes, ORIENTATIONS, LENGTH)), np.arange(lanes)
    for line in range(-reach, reach + 1):
        for column in range(-reach, reach + 1):
            values = basis[:, reach + line, reach + column]
            pixels = START + places + line * WIDTH + column
            for rows, term in zip(matrix, all_terms, strict=True):
                rows[places, term.component, pixels] += values[term.wave]
                if term.factor:
                    rows[places, term.other_component, pixels] += term.factor * values[term.other_wave]
    return matrix


def stored_terms(numbers, size, lanes):
    """Return a view of the terms of one feature as they are stored, one array per frequency."""
    parts, start = [], OFFSET
    for of_frequency in terms(size):
        end = start + FEATURES * len(of_frequency) * PANEL
        parts.append(numbers[start:end].reshape(FEATURES, len(of_frequency), PANEL)[FEATURE, :, :lanes])
        start = end
    return parts


def room_for_terms(size, value, dtype):
    return np.full(OFFSET + FEATURES * sum(len(of_frequency) for of_frequency in terms(size)) * PANEL, value, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_the_terms_are_those_of_the_definition(size, dtype):
    compute = terms_at_pixels(size)

    @kernel
    @no_type_check
    def run(planes, out):
        compute(planes, START, PLANE_STEP, WIDTH, out, OFFSET, FEATURE, FEATURES, PANEL)

    lanes = lanes_of(dtype)
    planes = np.random.default_rng(size).standard_normal((ORIENTATIONS, PLANE_STEP)).astype(dtype)
    expected = np.einsum("tlcp,cp->tl", term_matrix(size, lanes), planes[:, :LENGTH])
    out = room_for_terms(size, np.nan, dtype)
    run(planes.ravel(), out)
    np.testing.assert_allclose(np.concatenate(stored_terms(out, size, lanes)), expected, atol=TOLERANCE[dtype])
    assert np.isfinite(out).sum() == expected.size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_the_gradient_is_the_transpose_also_with_a_copy_of_the_planes_for_each_column(size, dtype):
    add_gradient = add_gradient_at_pixels(size)

    @kernel
    @no_type_check
    def run(g, planes, at, column_step):
        add_gradient(g, OFFSET, FEATURE, FEATURES, PANEL, planes, at, PLANE_STEP, WIDTH, column_step)

    rng, lanes = np.random.default_rng(size), lanes_of(dtype)
    g = room_for_terms(size, np.nan, dtype)
    for part in stored_terms(g, size, lanes):
        part[:] = rng.standard_normal(part.shape)
    expected = np.einsum("tlcp,tl->cp", term_matrix(size, lanes), np.concatenate(stored_terms(g, size, lanes)))
    before = rng.standard_normal((ORIENTATIONS, PLANE_STEP))
    planes = before.astype(dtype)
    run(g, planes.ravel(), START, 1)
    np.testing.assert_allclose(planes[:, :LENGTH] - before[:, :LENGTH], expected, atol=TOLERANCE[dtype])
    copies, reach = np.zeros((size, *before.shape), dtype), size // 2
    run(g, copies.ravel(), START + reach * before.size, before.size)
    moved = [np.roll(copy, column - reach, axis=1) for column, copy in enumerate(copies)]
    np.testing.assert_allclose(sum(moved)[:, :LENGTH], expected, atol=TOLERANCE[dtype])
