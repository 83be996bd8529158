"""CPU kernels of the Chebyshev statistics."""

from typing import no_type_check

import numpy as np

from tigranet.ops.cpu.compile import compile_exact, compile_inlined, compile_reassociated, kernel
from tigranet.ops.cpu.stencil import PIECE, from_flat, load, multiply, recur, wrap


@compile_reassociated
@no_type_check
def _sum_of_magnitudes(t, s):
    zero = t.dtype.type(0)
    total = zero
    for i in range(len(t)):
        total += abs(t[i]) if s[i] > zero else zero
    return total


@compile_reassociated
@no_type_check
def _deviations(t, s, centre):
    """Return the sum, and the sum of squares, of abs(t) - centre over the nodes."""
    zero = t.dtype.type(0)
    total, squares = zero, zero
    for i in range(len(t)):
        d = abs(t[i]) - centre
        d = d if s[i] > zero else zero
        total += d
        squares += d * d
    return total, squares


@compile_reassociated
@no_type_check
def _plus(total, term):
    """Add a term to a sum over nodes. The compiler may reorder these sums, also in functions that are exact."""
    return total + term


@compile_inlined
@no_type_check
def _step_with_deviations(above, here, below, s, before, factor, sign, eight, diagonal, new, p_new, centre):
    """Run one :func:`~tigranet.ops.cpu.stencil.step` and return what :func:`_deviations` does, in one pass."""
    zero, minus = s.dtype.type(0), s.dtype.type(-1)
    total, squares = zero, zero
    for i in range(len(new)):
        neighbours = (above[i + 1] + below[i + 1]) + (here[i] + here[i + 2])
        if eight:
            neighbours += diagonal * ((above[i] + below[i + 2]) + (above[i + 2] + below[i]))
        value = factor * (minus * s[i] * neighbours) + sign * before[i]
        value = value if s[i] > zero else zero
        new[i] = value
        p_new[i] = s[i] * value
        d = abs(value) - centre
        d = d if s[i] > zero else zero
        total = _plus(total, d)
        squares = _plus(squares, d * d)
    return total, squares


@compile_inlined
@no_type_check
def _recur(p, s, before, factor, sign, layout, diagonal, new, p_new, lo, hi, centre):
    """Run one step over the flat entries ``lo`` to ``hi``, and return the deviations of the result from ``centre``."""
    stride = layout[2]
    return _step_with_deviations(
        p[lo - stride - 1 : hi - stride + 1], p[lo - 1 : hi + 1], p[lo + stride - 1 : hi + stride + 1],
        s[lo:hi], before[lo:hi], factor, sign, layout[3] == 8, diagonal, new[lo:hi], p_new[lo:hi], centre,
    )  # fmt: skip


@compile_exact
@no_type_check
def _add_piece(t, s, lo, hi, count, nodes_so_far, mean, squares, centre, d, d2):
    """Merge the moments of the first ``nodes_so_far`` nodes with those of ``count`` more.

    ``d`` and ``d2`` are the deviations from ``centre``, a guess of the mean. The moments of a piece come from the
    corrected two-pass formula, and Chan's formula merges them. The first pass, for the mean, is skipped where the guess
    is within a standard deviation of the mean: the correction then loses at most one bit.
    """
    if not np.float64(d) * np.float64(d) * 2 <= np.float64(d2) * count:
        centre = t.dtype.type(np.float64(_sum_of_magnitudes(t[lo:hi], s[lo:hi])) / count)
        d, d2 = _deviations(t[lo:hi], s[lo:hi], centre)
    if np.isfinite(d2):
        shift = np.float64(d) / count
        piece_mean = np.float64(centre) + shift
        piece_squares = max(np.float64(d2) - shift * np.float64(d), 0.0)
    else:
        piece_mean, piece_squares = _moments_in_float64(t[lo:hi], s[lo:hi], count)
    difference = piece_mean - mean
    nodes = nodes_so_far + count
    if nodes_so_far:
        squares += piece_squares + difference * difference * nodes_so_far * count / nodes
        return mean + difference * count / nodes, squares
    return piece_mean, piece_squares


@compile_exact
@no_type_check
def _moments_in_float64(t, s, count):
    """Return the moments where a sum in the dtype of the signal has overflown; NaN if a value is infinite or NaN."""
    mean, squares = 0.0, 0.0
    for i in range(len(t)):
        if s[i] > 0:
            mean += abs(np.float64(t[i])) / count
    if not np.isfinite(mean):
        return np.nan, np.nan
    for i in range(len(t)):
        if s[i] > 0:
            d = abs(np.float64(t[i])) - mean
            squares += d * d
    return mean, squares


@kernel
@no_type_check
def statistics(z, active, masked, s, layout, diagonal, order, first, last, phi):
    """Store mean and variance of the magnitudes of t_0 .. t_order of the maps ``first`` to ``last`` in ``phi``.

    ``z`` is (maps, nodes) and ``phi`` (maps, order + 1, 2).
    """
    height, width, stride, _, wrap_rows, wrap_columns = layout
    one = z.dtype.type(1)
    size = len(s)
    t = np.zeros((3, size), z.dtype)
    p = np.zeros((2, size), z.dtype)
    zeros = np.zeros(size, z.dtype)
    product = np.empty(height * width, z.dtype)
    rows = max(1, PIECE // stride)
    for item in range(first, last):
        load(z[item], active[item % len(active)], masked, s, layout, product, t[0], p[0])
        mean = 0.0
        for k in range(order + 1):
            new = k % 3
            centre, mean, squares, nodes_so_far = z.dtype.type(mean), 0.0, 0.0, np.int64(0)  # 0 would compile twice
            for top in range(0, height, rows):
                count = min(rows, height - top)
                lo, hi = (top + 1) * stride + 1, (top + count) * stride + 1 + width
                if k:
                    before, factor, sign = (zeros, one, one) if k == 1 else (t[(k + 1) % 3], one + one, -one)
                    d, d2 = _recur(
                        p[(k + 1) % 2], s, before, factor, sign, layout, diagonal, t[new], p[k % 2], lo, hi, centre
                    )
                else:
                    d, d2 = _deviations(t[0, lo:hi], s[lo:hi], centre)
                mean, squares = _add_piece(t[new], s, lo, hi, count * width, nodes_so_far, mean, squares, centre, d, d2)
                nodes_so_far += count * width
            if 0 < k < order and (wrap_rows or wrap_columns):
                wrap(p[k % 2], layout)
            phi[item, k, 0] = mean
            phi[item, k, 1] = squares / nodes_so_far


@compile_exact
@no_type_check
def _largest_magnitude(bits):
    """Return the bits of the largest magnitude, or of a NaN: as integers, magnitudes have the order of their bits."""
    without_sign = bits.dtype.type((1 << (8 * bits.itemsize - 1)) - 1)
    largest = bits.dtype.type(0)
    for i in range(len(bits)):
        largest = max(largest, bits[i] & without_sign)
    return largest


@compile_exact
@no_type_check
def _adjoint_step(above, here, below, s, before, factor, eight, diagonal, t, noise, mu, a, b, new, p_new):
    """Compute factor * shifted - before + the gradient of mean and variance at t."""
    zero, minus = s.dtype.type(0), s.dtype.type(-1)
    for i in range(len(new)):
        total = (above[i + 1] + below[i + 1]) + (here[i] + here[i + 2])
        if eight:
            total += diagonal * ((above[i] + below[i + 2]) + (above[i + 2] + below[i]))
        value = factor * (minus * s[i] * total) - before[i]
        magnitude = abs(t[i])
        local = a + b * (magnitude - mu)
        local = -local if t[i] < zero else local
        value += local if magnitude > noise else zero
        value = value if s[i] > zero else zero
        new[i] = value
        p_new[i] = s[i] * value


@kernel
@no_type_check
def statistics_backward(z, active, masked, s, layout, diagonal, order, noise, phi, g, bits, first, last, g_z):
    """Run the recurrence again, then its adjoint.

    The adjoint is b_k = c_k + 2 (L - I) b_{k+1} - b_{k+2}, where c_k is the gradient by t_k itself; L is symmetric.
    ``g`` is the gradient by ``phi``, ``g_z`` that by ``z``. ``bits`` is any array of integers as wide as the numbers.
    """
    height, width, stride, _, wrap_rows, wrap_columns = layout
    one = z.dtype.type(1)
    size = len(s)
    nodes = height * width
    count_of_nodes = z.dtype.type(nodes)
    wraps = wrap_rows or wrap_columns
    lo, hi = stride + 1, height * stride + 1 + width
    t = np.zeros((order + 1, size), z.dtype)
    b = np.zeros((3, size), z.dtype)
    p = np.zeros((2, size), z.dtype)
    zeros = np.zeros(size, z.dtype)
    product = np.empty(nodes, z.dtype)
    largest = np.empty(1, z.dtype)
    rows = max(1, PIECE // stride)
    for item in range(first, last):
        signal = load(z[item], active[item % len(active)], masked, s, layout, product, t[0], p[0])
        largest.view(bits.dtype)[0] = _largest_magnitude(signal.view(bits.dtype))
        threshold = noise * largest[0]
        for k in range(1, order + 1):
            if k == 1:
                recur(p[0], s, zeros, one, one, layout, diagonal, t[1], p[1], lo, hi)
            else:
                recur(p[(k + 1) % 2], s, t[k - 2], one + one, -one, layout, diagonal, t[k], p[k % 2], lo, hi)
            if wraps and k < order:
                wrap(p[k % 2], layout)
        for k in range(order, -1, -1):
            q, q_new = p[(k + 1) % 2] if k < order else zeros, p[k % 2]
            older, new = b[(k + 2) % 3] if k < order - 1 else zeros, b[k % 3]
            by_mean = g[item, k, 0] / count_of_nodes
            by_variance = (g[item, k, 1] + g[item, k, 1]) / count_of_nodes
            for top in range(0, height, rows):
                count = min(rows, height - top)
                i, j = (top + 1) * stride + 1, (top + count) * stride + 1 + width
                _adjoint_step(
                    q[i - stride - 1 : j - stride + 1], q[i - 1 : j + 1], q[i + stride - 1 : j + stride + 1],
                    s[i:j], older[i:j], one + one if k else one, layout[3] == 8, diagonal, t[k, i:j], threshold,
                    phi[item, k, 0], by_mean, by_variance, new[i:j], q_new[i:j],
                )  # fmt: skip
            if wraps and k:
                wrap(q_new, layout)
        if masked:
            from_flat(product, b[0], layout)
            multiply(product, active[item], g_z[item])
        else:
            from_flat(g_z[item], b[0], layout)
