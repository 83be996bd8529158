import numpy as np
import pytest
import torch

from tigranet import GridLaplacian
from tigranet.ops.cpu import stencil
from tigranet.ops.cpu.compile import kernel
from tigranet.ops.cpu.flat_grid import flat_grid
from tigranet.ops.grid_spec import GridSpec
from tigranet.polynomials import chebyshev

copy, from_flat, load, multiply, recur, to_flat, wrap = (
    kernel(getattr(stencil, name).py_func)  # callable from Python
    for name in ("copy", "from_flat", "load", "multiply", "recur", "to_flat", "wrap")
)


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_a_step_of_the_recurrence_equals_the_plain_one_bit_for_bit(boundary):
    laplacian = GridLaplacian(5, 6, boundary=boundary)
    s, layout, diagonal = flat_grid(GridSpec.of(laplacian), torch.float32)
    z = torch.randn(30)
    t, p, zeros = np.zeros((3, len(s)), np.float32), np.zeros((2, len(s)), np.float32), np.zeros(len(s), np.float32)
    load(z.numpy(), np.empty(0, np.uint8), False, s, layout, np.empty(30, np.float32), t[0], p[0])
    one, lo, hi = np.float32(1), layout[2] + 1, 5 * layout[2] + 1 + 6
    recur(p[0], s, zeros, one, one, layout, diagonal, t[1], p[1], lo, hi)
    wrap(p[1], layout)
    recur(p[1], s, t[0], one + one, -one, layout, diagonal, t[2], p[0], lo, hi)
    for flat, expected in zip(t, chebyshev(z, laplacian, 2), strict=True):
        actual = np.empty(30, np.float32)
        from_flat(actual, flat, layout)
        assert torch.equal(torch.from_numpy(actual), expected)


def test_a_map_survives_the_flat_layout():
    s, layout, _ = flat_grid(GridSpec(4, 3, 8, True, 1.0), torch.float64)
    image, flat, result, duplicate = np.random.default_rng(0).random(12), np.zeros(len(s)), np.empty(12), np.empty(12)
    to_flat(flat, image, layout)
    assert (flat != 0).sum() == 12
    from_flat(result, flat, layout)
    copy(duplicate, result)
    assert (duplicate == image).all()


def test_a_mask_does_not_hide_a_nan():
    out = np.empty(3)
    multiply(np.array([1.0, np.nan, 2.0]), np.array([1, 0, 0], np.uint8), out)
    np.testing.assert_equal(out, [1.0, np.nan, 0.0])
