"""Tiles of any size compute what NumPy computes, and write nothing else."""

from typing import no_type_check

import numpy as np
import pytest

from tigranet.ops.cpu.arrays import VECTOR_BYTES
from tigranet.ops.cpu.compile import kernel
from tigranet.ops.cpu.product_tiles import inner_product_tile, product_tile


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "vectors"), [(1, 1), (3, 2), (8, 3)])
def test_rows_times_columns(rows, vectors, dtype):
    tile = product_tile(rows, vectors)

    @kernel
    @no_type_check
    def run(a, b, inner, out, columns):
        tile(a, 1, inner + 2, b, 3, columns + 1, inner, out, 2, columns + 1)

    rng, columns = np.random.default_rng(rows), vectors * VECTOR_BYTES // np.dtype(dtype).itemsize
    for inner in (1, 2, 17):
        a, b = rng.standard_normal((rows, inner + 2)).astype(dtype), rng.standard_normal((inner + 1, columns + 1))
        b = b.astype(dtype)
        out = np.full((rows + 1, columns + 1), np.nan, dtype)
        run(a.ravel(), b.ravel(), inner, out.ravel(), columns)
        expected = a[:, 1 : inner + 1] @ b.ravel()[3 : 3 + inner * (columns + 1)].reshape(inner, -1)[:, :columns]
        written = out.ravel()[2 : 2 + rows * (columns + 1)].reshape(rows, -1)
        np.testing.assert_allclose(written[:, :-1], expected, atol=2e-5 if dtype == np.float32 else 1e-13)
        assert np.isfinite(out).sum() == rows * columns


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "vectors"), [(1, 1), (3, 2), (8, 1)])
def test_a_tile_that_adds_continues_the_sums_of_the_tile_before(rows, vectors, dtype):
    """So products in two parts have the bits of all products at once."""
    tile, adding_tile = product_tile(rows, vectors), product_tile(rows, vectors, adds=True)

    @kernel
    @no_type_check
    def run(a, at, b, inner, adds, out, columns):
        place, stride = at * (columns + 1), columns + 1
        if adds:
            adding_tile(a, at, 20, b, place, stride, inner, out, 2, stride)
        else:
            tile(a, at, 20, b, place, stride, inner, out, 2, stride)

    rng, columns = np.random.default_rng(rows), vectors * VECTOR_BYTES // np.dtype(dtype).itemsize
    a, b = rng.standard_normal((rows, 20)).astype(dtype), rng.standard_normal((20, columns + 1)).astype(dtype)
    at_once, in_parts, added = (np.full((rows + 1, columns + 1), value, dtype) for value in (np.nan, np.nan, 7))
    run(a.ravel(), 0, b.ravel(), 20, False, at_once.ravel(), columns)
    run(a.ravel(), 0, b.ravel(), 8, False, in_parts.ravel(), columns)
    run(a.ravel(), 8, b.ravel(), 12, True, in_parts.ravel(), columns)
    np.testing.assert_array_equal(in_parts, at_once)
    run(a.ravel(), 0, b.ravel(), 20, True, added.ravel(), columns)
    is_written = np.isfinite(at_once)
    np.testing.assert_allclose(added[is_written], 7 + at_once[is_written], atol=2e-5 if dtype == np.float32 else 1e-13)
    assert (added[~is_written] == 7).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 5), (8, 3)])
def test_inner_products_of_rows(rows, columns, dtype):
    tile = inner_product_tile(rows, columns)

    @kernel
    @no_type_check
    def run(a, b, nodes, batch, out):
        tile(a, 2 * nodes, (rows + 3) * nodes, b, nodes, (columns + 1) * nodes, nodes, batch, out, 1, columns + 1)

    rng, lanes = np.random.default_rng(columns), VECTOR_BYTES // np.dtype(dtype).itemsize
    for batch, nodes in ((1, lanes), (3, lanes + 1), (2, 3 * lanes - 1), (0, lanes)):
        a, b = (rng.standard_normal((batch, maps, nodes)).astype(dtype) for maps in (rows + 3, columns + 1))
        out = np.full((rows, columns + 1), np.nan, dtype)
        run(a.ravel(), b.ravel(), nodes, batch, out.ravel())
        expected = np.einsum("brn,bcn->rc", a[:, 2 : rows + 2], b[:, 1:])
        np.testing.assert_allclose(out[:, 1:], expected, atol=3e-5 if dtype == np.float32 else 1e-13)
        assert np.isnan(out[:, 0]).all()
