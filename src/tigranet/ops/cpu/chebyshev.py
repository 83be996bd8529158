"""CPU kernels of the Chebyshev polynomials of maps, and of their sums."""

from typing import no_type_check

import numpy as np

from tigranet.ops.cpu.compile import compile_exact, kernel
from tigranet.ops.cpu.dense_torus import recur_on_torus, scale_into
from tigranet.ops.cpu.stencil import copy, from_flat, load, recur, wrap


@kernel
@no_type_check
def chebyshev_basis(y, s, layout, diagonal, degree, first, last, out):
    """Store t_0 .. t_degree of the maps ``first`` to ``last`` in ``out``, (batch, degree + 1, maps, nodes)."""
    height, width, stride, _, wrap_rows, wrap_columns = layout
    one, size, maps = y.dtype.type(1), len(s), out.shape[2]
    lo, hi = stride + 1, height * stride + 1 + width
    t, p = np.zeros((3, size), y.dtype), np.zeros((2, size), y.dtype)
    zeros = np.zeros(size, y.dtype)
    for item in range(first, last):
        image = out[item // maps]
        copy(image[0, item % maps], y[item])
        if degree:
            load(y[item], y[item], False, s, layout, zeros, t[0], p[0])
        for k in range(1, degree + 1):
            if k == 1:
                recur(p[0], s, zeros, one, one, layout, diagonal, t[1], p[1], lo, hi)
            else:
                before = t[(k + 1) % 3]
                recur(p[(k + 1) % 2], s, before, one + one, -one, layout, diagonal, t[k % 3], p[k % 2], lo, hi)
            if k < degree and (wrap_rows or wrap_columns):
                wrap(p[k % 2], layout)
            from_flat(image[k, item % maps], t[k % 3], layout)


@kernel
@no_type_check
def chebyshev_sum(u, s, layout, diagonal, degree, first, last, out):
    """Sum T_m u_m over m by Clenshaw's recurrence; ``u`` is (batch, degree + 1, maps, nodes)."""
    height, width, stride, _, wrap_rows, wrap_columns = layout
    if wrap_rows and wrap_columns and degree:
        _sum_on_torus(u, s[stride + 1], layout, diagonal, degree, first, last, out)
        return
    one, size, maps = u.dtype.type(1), len(s), u.shape[2]
    lo, hi = stride + 1, height * stride + 1 + width
    b, p = np.zeros((3, size), u.dtype), np.zeros((2, size), u.dtype)
    zeros, difference = np.zeros(size, u.dtype), np.zeros(size, u.dtype)
    for item in range(first, last):
        image = u[item // maps]
        if not degree:
            copy(out[item], image[0, item % maps])
            continue
        top = image[degree, item % maps]
        load(top, top, False, s, layout, zeros, b[degree % 3], p[degree % 2])
        for m in range(degree - 1, -1, -1):
            after = b[(m + 2) % 3] if m + 2 <= degree else zeros
            _subtract(after, image[m, item % maps], layout, difference)
            factor = one + one if m else one
            recur(p[(m + 1) % 2], s, difference, factor, -one, layout, diagonal, b[m % 3], p[m % 2], lo, hi)
            if m and (wrap_rows or wrap_columns):
                wrap(p[m % 2], layout)
        from_flat(out[item], b[0], layout)


@compile_exact
@no_type_check
def _sum_on_torus(u, s, layout, diagonal, degree, first, last, out):
    """Sum as :func:`chebyshev_sum`, where ``s`` is the same number at all nodes and ``degree`` is at least 1."""
    one, maps, nodes = u.dtype.type(1), u.shape[2], u.shape[3]
    b, zeros = np.zeros((3, nodes), u.dtype), np.zeros(nodes, u.dtype)
    p = np.zeros((2, nodes + 2 * layout[1] + 2), u.dtype)
    for item in range(first, last):
        image, which = u[item // maps], item % maps
        top = image[degree, which]
        scale_into(p[degree % 2], top, s, layout)
        for m in range(degree - 1, -1, -1):
            after = zeros if m == degree - 1 else top if m == degree - 2 else b[(m + 2) % 3]
            factor = one + one if m else one
            new = b[m % 3] if m else out[item]
            recur_on_torus(p[(m + 1) % 2], s, after, image[m, which], factor, layout, diagonal, new, p[m % 2])


@compile_exact
@no_type_check
def _subtract(a, u, layout, out):
    """Compute out = a - u, where ``u`` is a map, and ``a`` and ``out`` are in the flat layout."""
    height, width, stride = layout[0], layout[1], layout[2]
    for r in range(height):
        at = (r + 1) * stride + 1
        flat, dense, row = a[at : at + width], u[r * width : (r + 1) * width], out[at : at + width]
        for c in range(width):
            row[c] = flat[c] - dense[c]
