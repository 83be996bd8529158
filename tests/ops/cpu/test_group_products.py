"""Rows are multiplied by the matrix of their group, with the same bits wherever they are, in the given groups only."""

import numpy as np
import pytest

from tigranet.ops.cpu.group_products import multiply_groups


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 5, 6, 7, 16])
@pytest.mark.parametrize(("inner", "columns"), [(1, 16), (9, 17), (40, 33)])
def test_the_products_of_some_groups(size, inner, columns, dtype):
    rng = np.random.default_rng(size)
    x, matrices = (rng.standard_normal((4, *shape)).astype(dtype) for shape in ((size, inner), (inner, columns)))
    out = np.full((4, size, columns), np.nan, dtype)
    multiply_groups(x.ravel(), matrices.ravel(), size, inner, columns, 1, 3, out.ravel())
    np.testing.assert_allclose(out[1:3], x[1:3] @ matrices[1:3], atol=1e-5 if dtype == np.float32 else 1e-13)
    assert np.isnan(out[[0, 3]]).all()


def test_equal_rows_have_equal_bits():
    rng = np.random.default_rng(0)
    row, matrix = rng.standard_normal(107).astype(np.float32), rng.standard_normal((107, 35)).astype(np.float32)
    results = []
    for size in range(1, 20):
        x, out = np.tile(row, size), np.empty(size * 35, np.float32)
        multiply_groups(x, matrix.ravel(), size, 107, 35, 0, 1, out)
        results.append(out.reshape(size, 35))
    assert (np.concatenate(results) == results[0]).all()
