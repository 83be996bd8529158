"""The kernels compute the given panels and blocks of rows only."""

import numpy as np
import pytest

from tigranet.ops.cpu.map_products import GRADIENT_ROWS, matrix_gradient, mix, panels_per_image


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "inner", "nodes"), [(8, 1, 16), (13, 5, 200), (32, 40, 96)])
def test_each_panel_is_computed_once(rows, inner, nodes, dtype):
    rng = np.random.default_rng(nodes)
    matrix, y = rng.standard_normal((rows, inner)).astype(dtype), rng.standard_normal((3, inner, nodes)).astype(dtype)
    out, expected = np.full((3, rows, nodes), np.nan, dtype), matrix @ y
    panels = panels_per_image(nodes, y.itemsize)
    known = 0
    for item in range(3 * panels):
        mix(matrix.ravel(), y.ravel(), rows, inner, nodes, item, item + 1, out.ravel())
        count = np.isfinite(out).sum()
        assert count > known
        known = count
    np.testing.assert_allclose(out, expected, atol=2e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "inner", "nodes"), [(8, 3, 16), (13, 5, 200), (32, 40, 5000)])
def test_each_block_of_rows_of_a_gradient(rows, inner, nodes, dtype):
    rng = np.random.default_rng(nodes)
    g, y = (rng.standard_normal((5, maps, nodes)).astype(dtype) for maps in (rows, inner))
    out = np.full((rows, inner), np.nan, dtype)
    for block in range(-(-rows // GRADIENT_ROWS)):
        assert np.isnan(out[block * GRADIENT_ROWS :]).all()
        matrix_gradient(g.ravel(), y.ravel(), rows, inner, nodes, 5, block, block + 1, out.ravel())
        assert np.isfinite(out[: (block + 1) * GRADIENT_ROWS]).all()
    expected = np.einsum("brn,bin->ri", g.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(out, expected, atol=1e-3 if dtype == np.float32 else 1e-11)


def test_many_nodes_do_not_make_a_gradient_inexact():
    """The sums of pieces are added in float64. In single precision, the total would be wrong in the fourth digit."""
    numbers = np.full(400_000, 1.1, np.float32)
    g, y, out = (
        numbers.repeat(8).reshape(1000, 8, 400),
        np.ones((1000, 3, 400), np.float32),
        np.empty((8, 3), np.float32),
    )
    matrix_gradient(g.ravel(), y.ravel(), 8, 3, 400, 1000, 0, 1, out.ravel())
    exact = numbers.sum(dtype=np.float64)
    np.testing.assert_allclose(out, exact, rtol=1e-6)
    assert abs(np.cumsum(numbers)[-1] / exact - 1) > 1e-4
