"""Vectors in compiled code compute what NumPy computes."""

from typing import no_type_check

import numpy as np
import pytest

from tigranet.ops.cpu.arrays import VECTOR_BYTES
from tigranet.ops.cpu.compile import kernel
from tigranet.ops.cpu.vectors import (
    add,
    broadcast,
    load,
    multiply,
    multiply_add,
    store,
    subtract,
    transpose,
)


@kernel
@no_type_check
def compute(a, b, at, out):
    lanes = VECTOR_BYTES // a.itemsize
    u, v = load(a, at), load(b, at + 1)
    for i, result in enumerate((add(u, v), subtract(u, v), multiply(u, v), multiply_add(u, v, broadcast(a, at)))):
        store(out, 1 + i * lanes, result)


@kernel
@no_type_check
def transposed(a, at, stride, out, out_at, out_stride):
    transpose(a, at, stride, out, out_at, out_stride)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arithmetic_at_any_offset(dtype):
    lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
    a, b = np.random.default_rng(0).standard_normal((2, 3 + lanes)).astype(dtype)
    out = np.full(2 + 4 * lanes, np.nan, dtype)
    compute(a, b, 2, out)
    u, v = a[2 : 2 + lanes], b[3 : 3 + lanes]
    np.testing.assert_allclose(out[1:-1].reshape(4, lanes), [u + v, u - v, u * v, u * v + a[2]], rtol=1e-6)
    assert np.isnan(out[[0, -1]]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_block_of_a_matrix_is_transposed(dtype):
    lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
    a = np.arange(lanes * (lanes + 3), dtype=dtype).reshape(lanes, lanes + 3)
    out = np.full((lanes, lanes + 2), -1, dtype)
    transposed(a.ravel(), 2, lanes + 3, out.ravel(), 1, lanes + 2)
    np.testing.assert_array_equal(out[:, 1 : 1 + lanes], a[:, 2 : 2 + lanes].T)
    assert (out[:, [0, -1]] == -1).all()
