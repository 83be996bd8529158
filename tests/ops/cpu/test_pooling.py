import numpy as np
import pytest

from tigranet.ops.cpu import pooling
from tigranet.ops.cpu.compile import kernel

jth_largest, sort_keys = kernel(pooling.jth_largest.py_func), kernel(pooling.sort_keys.py_func)  # callable from Python


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_jth_largest_key_is_the_one_that_sorting_gives(dtype):
    rng = np.random.default_rng(0)
    for values in (rng.standard_normal(100), rng.integers(-3, 3, 100), np.full(100, -2.0)):
        bits = values.astype(dtype).view(np.int32 if dtype == np.float32 else np.int64)
        keys = np.empty_like(bits)
        sort_keys(bits, np.empty(0, np.uint8), False, keys)
        assert (np.argsort(keys, kind="stable") == np.argsort(values.astype(dtype), kind="stable")).all()
        for j in (1, 2, 50, 99, 100):
            assert jth_largest(keys, j) == np.sort(keys)[-j]


def test_nodes_outside_omega_have_the_lowest_keys():
    bits = np.array([1.0, 9.0, -3.0], np.float32).view(np.int32)
    keys = np.empty_like(bits)
    magnitude = sort_keys(bits, np.array([1, 0, 1], np.uint8), True, keys)
    assert keys.argmin() == 1
    assert np.array([magnitude], np.int32).view(np.float32)[0] == 3
