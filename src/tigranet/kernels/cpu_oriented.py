"""The oriented network's operations on the CPU, compiled by numba: what ``cpu.py`` says of its own holds here too.

Polynomials of L read and write a map in the flat layout of ``cpu.py``. Gradients have another, a map with a border of
one pixel on each side, which repeats the nearest or, on the torus, holds what is across; and their adjoints one of two
pixels, of zeros. Values are the same bits as the plain version's; gradients are added in another order.
"""

from typing import no_type_check

import numpy as np
from numba import njit

exact = njit(cache=True, nogil=True, error_model="numpy")


# sums of Chebyshev polynomials, and their adjoint, the polynomials themselves


@exact
@no_type_check
def _spread(flat, dense, grid):
    height, width, stride = grid[0], grid[1], grid[2]
    for r in range(height):
        row, out = dense[r * width : (r + 1) * width], flat[(r + 1) * stride + 1 : (r + 1) * stride + 1 + width]
        for c in range(width):
            out[c] = row[c]


@exact
@no_type_check
def _gather(dense, flat, grid):
    height, width, stride = grid[0], grid[1], grid[2]
    for r in range(height):
        row, out = flat[(r + 1) * stride + 1 : (r + 1) * stride + 1 + width], dense[r * width : (r + 1) * width]
        for c in range(width):
            out[c] = row[c]


@exact
@no_type_check
def _times(t, s, p):
    for i in range(len(p)):
        p[i] = t[i] * s[i]


@exact
@no_type_check
def _wrap(p, grid):
    height, width, stride, _, wrap_rows, wrap_columns = grid
    if wrap_rows:
        for i in range(stride):
            p[i] = p[height * stride + i]
            p[(height + 1) * stride + i] = p[stride + i]
    if wrap_columns:
        for r in range(height + 2):
            p[r * stride] = p[r * stride + width]
            p[r * stride + width + 1] = p[r * stride + 1]


@exact
@no_type_check
def _step(above, here, below, s, u, before, factor, eight, diagonal, new, p_new):
    """new = u + factor * shifted - before, and p_new = s * new."""
    zero, minus = s.dtype.type(0), s.dtype.type(-1)
    if eight:
        for i in range(len(new)):
            cross = (above[i + 1] + below[i + 1]) + (here[i] + here[i + 2])
            corners = (above[i] + below[i + 2]) + (above[i + 2] + below[i])
            value = (u[i] + factor * (minus * s[i] * (cross + diagonal * corners))) - before[i]
            value = value if s[i] > zero else zero
            new[i] = value
            p_new[i] = s[i] * value
    else:
        for i in range(len(new)):
            cross = (above[i + 1] + below[i + 1]) + (here[i] + here[i + 2])
            value = (u[i] + factor * (minus * s[i] * cross)) - before[i]
            value = value if s[i] > zero else zero
            new[i] = value
            p_new[i] = s[i] * value


@exact
@no_type_check
def _recur(p, s, u, before, factor, grid, diagonal, new, p_new):
    height, width, stride = grid[0], grid[1], grid[2]
    lo, hi = stride + 1, height * stride + 1 + width
    _step(
        p[lo - stride - 1 : hi - stride + 1], p[lo - 1 : hi + 1], p[lo + stride - 1 : hi + stride + 1],
        s[lo:hi], u[lo:hi], before[lo:hi], factor, grid[3] == 8, diagonal, new[lo:hi], p_new[lo:hi],
    )  # fmt: skip
    _wrap(p_new, grid)


@exact
@no_type_check
def chebyshev_sum(u, s, grid, diagonal, first, last, z):
    """Clenshaw's recurrence over the terms of ``u`` (batch, terms, maps, nodes), into ``z`` (batch, maps, nodes)."""
    terms, maps = u.shape[1], u.shape[2]
    one = u.dtype.type(1)
    b = np.zeros((3, len(s)), u.dtype)
    p = np.zeros((2, len(s)), u.dtype)
    term = np.zeros(len(s), u.dtype)
    nothing = np.zeros(len(s), u.dtype)
    for item in range(first, last):
        image, i = item // maps, item % maps
        top = terms - 1
        _spread(b[top % 3], u[image, top, i], grid)
        _times(b[top % 3], s, p[top % 2])
        _wrap(p[top % 2], grid)
        for m in range(terms - 2, -1, -1):
            _spread(term, u[image, m, i], grid)
            before = b[(m + 2) % 3] if m + 2 < terms else nothing
            _recur(p[(m + 1) % 2], s, term, before, one + one if m else one, grid, diagonal, b[m % 3], p[m % 2])
        _gather(z[image, i], b[0], grid)


@exact
@no_type_check
def chebyshev_basis(y, s, grid, diagonal, first, last, t):
    """The polynomials of ``y`` (batch, maps, nodes), into ``t`` (batch, terms, maps, nodes)."""
    terms, maps = t.shape[1], t.shape[2]
    one = y.dtype.type(1)
    b = np.zeros((3, len(s)), y.dtype)
    p = np.zeros((2, len(s)), y.dtype)
    nothing = np.zeros(len(s), y.dtype)
    for item in range(first, last):
        image, i = item // maps, item % maps
        _spread(b[0], y[image, i], grid)
        _times(b[0], s, p[0])
        _wrap(p[0], grid)
        t[image, 0, i, :] = y[image, i]
        for m in range(1, terms):
            before = b[(m + 1) % 3] if m > 1 else nothing
            _recur(
                p[(m + 1) % 2], s, nothing, before, one + one if m > 1 else one, grid, diagonal, b[m % 3], p[m % 2]
            )  # fmt: skip
            _gather(t[image, m, i], b[m % 3], grid)


# oriented products


@exact
@no_type_check
def _frame(dense, p, height, width):
    """A map inside a border."""
    for r in range(height):
        row, out = dense[r * width : (r + 1) * width], p[r + 1]
        for c in range(width):
            out[c + 1] = row[c]


@exact
@no_type_check
def _surround(p, height, width, wrap_rows, wrap_columns):
    """The border: the nearest pixel again or, on the torus, what is across."""
    north, south = (height, 1) if wrap_rows else (1, height)
    west, east = (width, 1) if wrap_columns else (1, width)
    for c in range(1, width + 1):
        p[0, c] = p[north, c]
        p[height + 1, c] = p[south, c]
    for r in range(height + 2):
        p[r, 0] = p[r, west]
        p[r, width + 1] = p[r, east]


@exact
@no_type_check
def _gradient(p, height, width, f_x, f_y):
    ten, three = p.dtype.type(10 / 32), p.dtype.type(3 / 32)
    for r in range(height):
        above, here, below = p[r], p[r + 1], p[r + 2]
        x, y = f_x[r + 1], f_y[r + 1]
        for c in range(width):
            falling, rising = below[c + 2] - above[c], above[c + 2] - below[c]
            x[c + 1] = ten * (here[c + 2] - here[c]) + three * (falling + rising)
            y[c + 1] = ten * (below[c + 1] - above[c + 1]) + three * (falling - rising)


@exact
@no_type_check
def _gradients(dense, height, width, wrap_rows, wrap_columns, p, work, out):
    """``out``: f_x, f_y, f_xx - f_yy and 2 f_xy of one map, each inside a border."""
    _frame(dense, p, height, width)
    _surround(p, height, width, wrap_rows, wrap_columns)
    _gradient(p, height, width, out[0], out[1])
    for part in range(2):
        _surround(out[part], height, width, wrap_rows, wrap_columns)
    _gradient(out[0], height, width, out[2], out[3])
    _gradient(out[1], height, width, work[0], work[1])
    for r in range(1, height + 1):
        a, b, yx, yy = out[2, r], out[3, r], work[0, r], work[1, r]
        for c in range(1, width + 1):
            a[c] = a[c] - yy[c]
            b[c] = b[c] + yx[c]


@exact
@no_type_check
def products(f, g, height, width, wrap_rows, wrap_columns, mirrored, first, last, out):
    """Real and imaginary parts of first and second order of ``f`` times the conjugate of ``g`` (batch, pairs, nodes),
    into ``out`` (batch, kinds, pairs, nodes); the real parts alone if they are ``mirrored``."""
    pairs = f.shape[1]
    p = np.zeros((height + 2, width + 2), f.dtype)
    work = np.zeros((2, height + 2, width + 2), f.dtype)
    df, dg = np.zeros((4, height + 2, width + 2), f.dtype), np.zeros((4, height + 2, width + 2), f.dtype)
    for item in range(first, last):
        image, pair = item // pairs, item % pairs
        _gradients(f[image, pair], height, width, wrap_rows, wrap_columns, p, work, df)
        _gradients(g[image, pair], height, width, wrap_rows, wrap_columns, p, work, dg)
        for order in range(2):
            real = out[image, order if mirrored else 2 * order, pair]
            for r in range(height):
                a, b, c, d = (
                    df[2 * order, r + 1],
                    df[2 * order + 1, r + 1],
                    dg[2 * order, r + 1],
                    dg[2 * order + 1, r + 1],
                )
                row = real[r * width : (r + 1) * width]
                for i in range(width):
                    row[i] = a[i + 1] * c[i + 1] + b[i + 1] * d[i + 1]
                if not mirrored:
                    row = out[image, 2 * order + 1, pair, r * width : (r + 1) * width]
                    for i in range(width):
                        row[i] = b[i + 1] * c[i + 1] - a[i + 1] * d[i + 1]


@exact
@no_type_check
def _adjoint(g_x, g_y, height, width, wrap_rows, wrap_columns, q):
    """The adjoint of the gradient of ``g_x`` and ``g_y``, which lie inside two pixels of zeros, into ``q``, inside one;
    the border is folded back to where it was read from."""
    ten, three = q.dtype.type(10 / 32), q.dtype.type(3 / 32)
    for r in range(height + 2):
        out = q[r]
        x0, x1, x2, y0, y2 = g_x[r + 2], g_x[r + 1], g_x[r], g_y[r + 2], g_y[r]
        for c in range(width + 2):
            across = ten * (x1[c] - x1[c + 2]) + three * ((x0[c] - x0[c + 2]) + (x2[c] - x2[c + 2]))
            down = ten * (y2[c + 1] - y0[c + 1]) + three * ((y2[c] - y0[c]) + (y2[c + 2] - y0[c + 2]))
            out[c] = across + down
    north, south = (height, 1) if wrap_rows else (1, height)
    west, east = (width, 1) if wrap_columns else (1, width)
    for r in range(height + 2):
        q[r, west] += q[r, 0]
        q[r, east] += q[r, width + 1]
    for c in range(1, width + 1):
        q[north, c] += q[0, c]
        q[south, c] += q[height + 1, c]


@exact
@no_type_check
def _pull(by, height, width, wrap_rows, wrap_columns, minus, q, out):
    """The gradient by a map, ``out``, from those ``by`` its f_x, f_y, f_xx - f_yy and 2 f_xy."""
    a = by[2]
    for r in range(2, height + 2):
        for c in range(2, width + 2):
            minus[r, c] = -a[r, c]
    for part in range(2):
        if part == 0:
            _adjoint(by[2], by[3], height, width, wrap_rows, wrap_columns, q)
        else:
            _adjoint(by[3], minus, height, width, wrap_rows, wrap_columns, q)
        for r in range(height):
            total, more = by[part, r + 2], q[r + 1]
            for c in range(width):
                total[c + 2] += more[c + 1]
    _adjoint(by[0], by[1], height, width, wrap_rows, wrap_columns, q)
    for r in range(height):
        row, more = out[r * width : (r + 1) * width], q[r + 1]
        for c in range(width):
            row[c] = more[c + 1]


@exact
@no_type_check
def products_backward(upstream, f, g, height, width, wrap_rows, wrap_columns, mirrored, first, last, g_f, g_g):
    """Gradients by ``f`` and ``g``; their own image gradients are computed again."""
    pairs = f.shape[1]
    p = np.zeros((height + 2, width + 2), f.dtype)
    q = np.zeros((height + 2, width + 2), f.dtype)
    work = np.zeros((2, height + 2, width + 2), f.dtype)
    df, dg = np.zeros((4, height + 2, width + 2), f.dtype), np.zeros((4, height + 2, width + 2), f.dtype)
    by_f, by_g = np.zeros((4, height + 4, width + 4), f.dtype), np.zeros((4, height + 4, width + 4), f.dtype)
    minus = np.zeros((height + 4, width + 4), f.dtype)
    nothing = np.zeros(width, f.dtype)
    for item in range(first, last):
        image, pair = item // pairs, item % pairs
        _gradients(f[image, pair], height, width, wrap_rows, wrap_columns, p, work, df)
        _gradients(g[image, pair], height, width, wrap_rows, wrap_columns, p, work, dg)
        for order in range(2):
            x, y = 2 * order, 2 * order + 1
            for r in range(height):
                lo, hi = r * width, (r + 1) * width
                real = upstream[image, order if mirrored else x, pair, lo:hi]
                imaginary = nothing if mirrored else upstream[image, y, pair, lo:hi]
                a, b, c, d = df[x, r + 1], df[y, r + 1], dg[x, r + 1], dg[y, r + 1]
                by_a, by_b, by_c, by_d = by_f[x, r + 2], by_f[y, r + 2], by_g[x, r + 2], by_g[y, r + 2]
                for i in range(width):
                    by_a[i + 2] = real[i] * c[i + 1] - imaginary[i] * d[i + 1]
                    by_b[i + 2] = real[i] * d[i + 1] + imaginary[i] * c[i + 1]
                    by_c[i + 2] = real[i] * a[i + 1] + imaginary[i] * b[i + 1]
                    by_d[i + 2] = real[i] * b[i + 1] - imaginary[i] * a[i + 1]
        _pull(by_f, height, width, wrap_rows, wrap_columns, minus, q, g_f[image, pair])
        _pull(by_g, height, width, wrap_rows, wrap_columns, minus, q, g_g[image, pair])
