"""The three operations on the CPU, compiled by numba: a map is read once, kept in cache, and all orders run over it.

A map lies in a *flat* buffer with a border of zeros (free) or of what is across (torus), so that a step of a recurrence
is one long loop that vectorises whatever the width is. ``s`` is :math:`D^{-1/2}` in that layout and zero on the border,
which is how the border stays zero: it is never computed, but chosen away, so that a NaN cannot leak through it.

Every sum that a node's value depends on is added in the order of the plain version, without fused multiply-adds:
the values are the same bits. Only the sums *over* nodes (mean, variance, gradients of coefficients) are reassociated
into vectors, in pieces of some thousand nodes whose totals are float64, or in float64 throughout.

All of it is one file because numba's cache on disk looks for changes in the file of the function it is asked for only.
It is imported on first use. Masks are bytes. Each operation works on items ``first`` to ``last`` of a batch, holds no
lock while it runs and starts no threads: ``threads.py`` calls it from several.
"""

from typing import no_type_check

import numpy as np
from numba import njit

PIECE = 4096
"""Nodes that are summed in the dtype of the signal before the total is carried on in float64."""

exact = njit(cache=True, nogil=True, error_model="numpy")
"""Additions as they are written."""
summed = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})
"""Additions in any order: for sums over nodes."""


# one step of a recurrence


@exact
@no_type_check
def _step(above, here, below, s, before, factor, sign, eight, diagonal, new, p_new):
    """new = factor * shifted + sign * before, and p_new = s * new; ``above``, ``here`` and ``below`` start one to the
    left of the first node."""
    zero, minus = s.dtype.type(0), s.dtype.type(-1)
    if eight:
        for i in range(len(new)):
            cross = (above[i + 1] + below[i + 1]) + (here[i] + here[i + 2])
            corners = (above[i] + below[i + 2]) + (above[i + 2] + below[i])
            value = factor * (minus * s[i] * (cross + diagonal * corners)) + sign * before[i]
            value = value if s[i] > zero else zero
            new[i] = value
            p_new[i] = s[i] * value
    else:
        for i in range(len(new)):
            cross = (above[i + 1] + below[i + 1]) + (here[i] + here[i + 2])
            value = factor * (minus * s[i] * cross) + sign * before[i]
            value = value if s[i] > zero else zero
            new[i] = value
            p_new[i] = s[i] * value


@exact
@no_type_check
def _recur(p, s, before, factor, sign, grid, diagonal, new, p_new, lo, hi):
    """The step over the flat nodes ``lo`` to ``hi``."""
    stride = grid[2]
    _step(
        p[lo - stride - 1 : hi - stride + 1], p[lo - 1 : hi + 1], p[lo + stride - 1 : hi + stride + 1],
        s[lo:hi], before[lo:hi], factor, sign, grid[3] == 8, diagonal, new[lo:hi], p_new[lo:hi],
    )  # fmt: skip


@exact
@no_type_check
def _wrap(p, grid):
    """What lies across the border, on the torus."""
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
def _spread(flat, dense, grid):
    """A map into the flat layout."""
    height, width, stride = grid[0], grid[1], grid[2]
    for r in range(height):
        row, out = dense[r * width : (r + 1) * width], flat[(r + 1) * stride + 1 : (r + 1) * stride + 1 + width]
        for c in range(width):
            out[c] = row[c]


@exact
@no_type_check
def _gather(dense, flat, grid):
    """A map out of the flat layout."""
    height, width, stride = grid[0], grid[1], grid[2]
    for r in range(height):
        row, out = flat[(r + 1) * stride + 1 : (r + 1) * stride + 1 + width], dense[r * width : (r + 1) * width]
        for c in range(width):
            out[c] = row[c]


@exact
@no_type_check
def _times(a, b, out):
    """a * b, also where b is a mask: a product, not a choice, so that a NaN is not hidden."""
    for i in range(len(out)):
        out[i] = a[i] * a.dtype.type(b[i])


@exact
@no_type_check
def _load(z, active, masked, s, grid, product, t, p):
    """A map times its mask into the flat layout, and s times that; answers the product."""
    if masked:
        _times(z, active, product)
        z = product
    _spread(t, z, grid)
    _times(t, s, p)
    _wrap(p, grid)
    return z


@exact
@no_type_check
def _largest(bits):
    """The largest magnitude, or a NaN, as bits: those of magnitudes are in the order of the magnitudes."""
    kept = bits.dtype.type((1 << (8 * bits.itemsize - 1)) - 1)
    most = bits.dtype.type(0)
    for i in range(len(bits)):
        most = max(most, bits[i] & kept)
    return most


# Chebyshev statistics


@summed
@no_type_check
def _total(t):
    total = t.dtype.type(0)
    for i in range(len(t)):
        total += abs(t[i])
    return total


@summed
@no_type_check
def _about(t, s, centre):
    """Sum and sum of squares of abs(t) - centre over the nodes."""
    zero = t.dtype.type(0)
    total, squares = zero, zero
    for i in range(len(t)):
        d = abs(t[i]) - centre
        d = d if s[i] > zero else zero
        total += d
        squares += d * d
    return total, squares


@exact
@no_type_check
def _merge(t, s, lo, hi, count, seen, mean, squares, guess):
    """Moments of the first ``seen`` nodes and of ``count`` more, by the corrected two-pass formula and Chan's merge.

    The first pass, for the mean, is spared where ``guess`` is within a standard deviation of it: the correction then
    loses no more than a bit.
    """
    centre = t.dtype.type(guess)
    d, d2 = _about(t[lo:hi], s[lo:hi], centre)
    if not np.float64(d) * np.float64(d) * 2 <= np.float64(d2) * count:
        centre = t.dtype.type(np.float64(_total(t[lo:hi])) / count)
        d, d2 = _about(t[lo:hi], s[lo:hi], centre)
    if np.isfinite(d2):
        shift = np.float64(d) / count
        here = np.float64(centre) + shift
        added = max(np.float64(d2) - shift * np.float64(d), 0.0)
    else:
        here, added = _carefully(t[lo:hi], s[lo:hi], count)
    step = here - mean
    both = seen + count
    if seen:
        squares += added + step * step * seen * count / both
        return mean + step * count / both, squares
    return here, added


@exact
@no_type_check
def _carefully(t, s, count):
    """The same in float64, where a sum in the dtype of the signal has overflown; NaN if a value is infinite or NaN."""
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


@exact
@no_type_check
def statistics(z, active, masked, s, grid, diagonal, order, first, last, phi):
    """Mean and variance of the magnitudes of t_0 .. t_order of the maps ``first`` to ``last``, into ``phi``."""
    height, width, stride, _, wrap_rows, wrap_columns = grid
    one = z.dtype.type(1)
    size = len(s)
    t = np.zeros((3, size), z.dtype)
    p = np.zeros((2, size), z.dtype)
    nothing = np.zeros(size, z.dtype)
    product = np.empty(height * width, z.dtype)
    rows = max(1, PIECE // stride)
    for item in range(first, last):
        _load(z[item], active[item % len(active)], masked, s, grid, product, t[0], p[0])
        mean = 0.0
        for k in range(order + 1):
            new = k % 3
            guess, mean, squares, seen = mean, 0.0, 0.0, 0
            for top in range(0, height, rows):
                count = min(rows, height - top)
                lo, hi = (top + 1) * stride + 1, (top + count) * stride + 1 + width
                if k == 1:
                    _recur(p[0], s, nothing, one, one, grid, diagonal, t[new], p[1], lo, hi)
                elif k:
                    before = t[(k + 1) % 3]
                    _recur(p[(k + 1) % 2], s, before, one + one, -one, grid, diagonal, t[new], p[k % 2], lo, hi)
                mean, squares = _merge(t[new], s, lo, hi, count * width, seen, mean, squares, guess)
                seen += count * width
            if k and (wrap_rows or wrap_columns):
                _wrap(p[k % 2], grid)
            phi[item, k, 0] = mean
            phi[item, k, 1] = squares / seen


@exact
@no_type_check
def _pull(above, here, below, s, before, factor, eight, diagonal, t, noise, mu, a, b, new, p_new):
    """The adjoint step: factor * shifted - before + the gradient of mean and variance at t."""
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


@exact
@no_type_check
def statistics_backward(z, active, masked, s, grid, diagonal, order, noise, phi, g, bits, first, last, g_z):
    """Run the recursion again, then its adjoint: b_k = c_k + 2 (L - I) b_{k+1} - b_{k+2}, where c_k is the gradient
    by t_k itself and L is symmetric. ``g`` is the gradient by ``phi``, ``g_z`` that by ``z``; ``bits`` is any array of
    integers as wide as the numbers."""
    height, width, stride, _, wrap_rows, wrap_columns = grid
    one = z.dtype.type(1)
    size = len(s)
    nodes = height * width
    many = z.dtype.type(nodes)
    wraps = wrap_rows or wrap_columns
    lo, hi = stride + 1, height * stride + 1 + width
    t = np.zeros((order + 1, size), z.dtype)
    b = np.zeros((3, size), z.dtype)
    p = np.zeros((2, size), z.dtype)
    nothing = np.zeros(size, z.dtype)
    product = np.empty(nodes, z.dtype)
    largest = np.empty(1, z.dtype)
    rows = max(1, PIECE // stride)
    for item in range(first, last):
        read = _load(z[item], active[item % len(active)], masked, s, grid, product, t[0], p[0])
        largest.view(bits.dtype)[0] = _largest(read.view(bits.dtype))
        threshold = noise * largest[0]
        for k in range(1, order + 1):
            if k == 1:
                _recur(p[0], s, nothing, one, one, grid, diagonal, t[1], p[1], lo, hi)
            else:
                _recur(p[(k + 1) % 2], s, t[k - 2], one + one, -one, grid, diagonal, t[k], p[k % 2], lo, hi)
            if wraps:
                _wrap(p[k % 2], grid)
        for k in range(order, -1, -1):
            q, q_new = p[(k + 1) % 2] if k < order else nothing, p[k % 2]
            older, new = b[(k + 2) % 3] if k < order - 1 else nothing, b[k % 3]
            by_mean, by_variance = g[item, k, 0] / many, (g[item, k, 1] + g[item, k, 1]) / many
            for top in range(0, height, rows):
                count = min(rows, height - top)
                i, j = (top + 1) * stride + 1, (top + count) * stride + 1 + width
                _pull(
                    q[i - stride - 1 : j - stride + 1], q[i - 1 : j + 1], q[i + stride - 1 : j + stride + 1],
                    s[i:j], older[i:j], one + one if k else one, grid[3] == 8, diagonal, t[k, i:j], threshold,
                    phi[item, k, 0], by_mean, by_variance, new[i:j], q_new[i:j],
                )  # fmt: skip
            if wraps and k:
                _wrap(q_new, grid)
        if masked:
            _gather(product, b[0], grid)
            _times(product, active[item], g_z[item])
        else:
            _gather(g_z[item], b[0], grid)


# spectral convolution


@exact
@no_type_check
def _add(total, weight, signal):
    for i in range(len(total)):
        total[i] += weight * signal[i]


@exact
@no_type_check
def _add_five(total, weights, u, v, w, x, y):
    """Five terms at once, one after the other at each node: less than half the traffic of one by one."""
    a, b, c, d, e = weights[0], weights[1], weights[2], weights[3], weights[4]
    for i in range(len(total)):
        total[i] = ((((total[i] + a * u[i]) + b * v[i]) + c * w[i]) + d * x[i]) + e * y[i]


@exact
@no_type_check
def _combine(weights, signals, lo, hi, total):
    """The sum of weights[j] * signals[j], in this order at every node, of the nodes ``lo`` to ``hi``."""
    total[:] = 0
    j = 0
    while j + 5 <= len(weights):
        _add_five(
            total, weights[j : j + 5], signals[j, lo:hi], signals[j + 1, lo:hi], signals[j + 2, lo:hi],
            signals[j + 3, lo:hi], signals[j + 4, lo:hi],
        )  # fmt: skip
        j += 5
    while j < len(weights):
        _add(total, weights[j], signals[j, lo:hi])
        j += 1


@exact
@no_type_check
def _powers(y, beta, s, grid, diagonal, degree, t, p, powers):
    """L^m of the mixed maps, m = 0 .. degree."""
    height, width, stride = grid[0], grid[1], grid[2]
    one = y.dtype.type(1)
    for lo in range(0, height * width, PIECE):
        hi = min(lo + PIECE, height * width)
        _combine(beta, y, lo, hi, powers[0, lo:hi])
    _spread(t[0], powers[0], grid)
    _times(t[0], s, p[0])
    for m in range(1, degree + 1):
        before, new = (m + 1) % 2, m % 2
        _wrap(p[before], grid)
        _recur(
            p[before], s, t[before], one, one, grid, diagonal, t[new], p[new],
            stride + 1, height * stride + 1 + width,
        )  # fmt: skip
        _gather(powers[m], t[new], grid)


@exact
@no_type_check
def convolution(y, alpha, beta, omega, masked, s, grid, diagonal, first, last, z):
    """z_i = sum_m alpha_im L^m sum_k beta_k y_k, times omega."""
    nodes = y.shape[2]
    outputs, degree = alpha.shape[0], alpha.shape[1] - 1
    t = np.zeros((2, len(s)), y.dtype)
    p = np.zeros((2, len(s)), y.dtype)
    powers = np.empty((degree + 1, nodes), y.dtype)
    for item in range(first, last):
        _powers(y[item], beta, s, grid, diagonal, degree, t, p, powers)
        for lo in range(0, nodes, PIECE):
            hi = min(lo + PIECE, nodes)
            for i in range(outputs):
                _combine(alpha[i], powers, lo, hi, z[item, i, lo:hi])
                if masked:
                    _keep(z[item, i, lo:hi], omega[item, lo:hi])


@exact
@no_type_check
def _keep(z, omega):
    for i in range(len(z)):
        z[i] = z[i] * z.dtype.type(omega[i])


@summed
@no_type_check
def _dot(a, b):
    total = a.dtype.type(0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@exact
@no_type_check
def convolution_backward(
    g, y, alpha, beta, omega, masked, s, grid, diagonal, wanted, first, last, g_y, g_alpha, g_beta
):
    """The gradient by the mixed map is c_0 + L (c_1 + L (c_2 + ...)) with c_m = sum_i alpha_im g_i; those by alpha
    and beta are products with the powers and the maps, one set an image. ``g_y`` is filled if it is ``wanted``."""
    height, width, stride = grid[0], grid[1], grid[2]
    nodes, inputs = y.shape[2], y.shape[1]
    outputs, degree = alpha.shape[0], alpha.shape[1] - 1
    one, zero = y.dtype.type(1), y.dtype.type(0)
    lowest, highest = stride + 1, height * stride + 1 + width
    t = np.zeros((2, len(s)), y.dtype)
    p = np.zeros((2, len(s)), y.dtype)
    powers = np.empty((degree + 1, nodes), y.dtype)
    local = np.empty((degree + 1, nodes), y.dtype)
    kept = np.empty((outputs, min(PIECE, nodes)), y.dtype)
    transposed = alpha.T.copy()
    for item in range(first, last):
        _powers(y[item], beta, s, grid, diagonal, degree, t, p, powers)
        sums = np.zeros((outputs, degree + 1))
        for lo in range(0, nodes, PIECE):
            hi = min(lo + PIECE, nodes)
            for i in range(outputs):
                if masked:
                    _times(g[item, i, lo:hi], omega[item, lo:hi], kept[i, : hi - lo])
                else:
                    kept[i, : hi - lo] = g[item, i, lo:hi]
                for m in range(degree + 1):
                    sums[i, m] += _dot(kept[i, : hi - lo], powers[m, lo:hi])
            for m in range(degree + 1):
                _combine(transposed[m], kept, 0, hi - lo, local[m, lo:hi])
        g_alpha[item] = sums
        mixed = local[degree]
        for m in range(degree - 1, -1, -1):
            _spread(t[0], mixed, grid)
            _times(t[0], s, p[0])
            _wrap(p[0], grid)
            _recur(p[0], s, t[0], one, one, grid, diagonal, t[1], p[1], lowest, highest)
            _gather(powers[m], t[1], grid)  # its power is not needed any more
            _add(local[m], one, powers[m])
            mixed = local[m]
        for k in range(inputs):
            total = 0.0
            for lo in range(0, nodes, PIECE):
                total += _dot(y[item, k, lo : lo + PIECE], mixed[lo : lo + PIECE])
            g_beta[item, k] = total
            if wanted:
                g_y[item, k] = zero
                _add(g_y[item, k], beta[k], mixed)


# dynamic pooling


@exact
@no_type_check
def _order(bits, omega, masked, keys):
    """Integers in the order of the values, NaN above all, the least outside omega; and the magnitude as bits: a NaN
    if a value is NaN, or is infinite outside omega, where the plain version multiplies it by zero."""
    sign = 8 * bits.itemsize - 1
    zero = bits.dtype.type(0)
    kept = bits.dtype.type((1 << sign) - 1)
    least = ~kept
    infinity = bits.dtype.type(0x7F800000 if sign == 31 else 0x7FF0000000000000)
    most = bits.dtype.type(0)
    for i in range(len(bits)):
        magnitude = bits[i] & kept
        key = bits[i] ^ ((bits[i] >> sign) & kept)
        key = kept if magnitude > infinity else key
        if masked:
            inside = omega[i] != 0
            key = key if inside else least
            magnitude = magnitude if inside else (kept if magnitude >= infinity else zero)
        keys[i] = key
        most = max(most, magnitude)
    return most


@exact
@no_type_check
def _count(keys, threshold):
    """How many are not below the threshold, and the least of those."""
    count = keys.dtype.type(0)
    for i in range(len(keys)):
        count += keys.dtype.type(keys[i] >= threshold)
    return count


@exact
@no_type_check
def _extremes(keys):
    least, most = keys[0], keys[0]
    for i in range(len(keys)):
        least = min(least, keys[i])
        most = max(most, keys[i])
    return least, most


@exact
@no_type_check
def _least_not_below(keys, threshold, most):
    least = most
    for i in range(len(keys)):
        key = keys[i] if keys[i] >= threshold else most
        least = min(least, key)
    return least


@exact
@no_type_check
def _jth(keys, j):
    """The j-th largest key, by bisection."""
    low, high = _extremes(keys)
    if _count(keys, high) >= j:
        return high
    most = high
    while True:  # at least j are not below low, fewer than j are not below high
        middle = (low & high) + ((low ^ high) >> 1)
        if middle == low:
            return low
        count = _count(keys, middle)
        if count == j:
            return _least_not_below(keys, middle, most)
        if count > j:
            low = middle
        else:
            high = middle


@exact
@no_type_check
def pooling(z, omega, masked, maps, num_active, strict, tolerance, bits, first, last, active):
    """The ``num_active`` largest of each map in omega; ``bits`` is ``z`` as integers."""
    nodes = z.shape[1]
    keys = np.empty(nodes, bits.dtype)
    value = np.empty(1, z.dtype)
    raw = value.view(bits.dtype)
    sign = 8 * bits.itemsize - 1
    kept = bits.dtype.type((1 << sign) - 1)
    j = min(num_active, nodes)
    for item in range(first, last):
        inside = omega[(item // maps) % len(omega)]
        raw[0] = _order(bits[item], inside, masked, keys)
        magnitude = value[0]
        key = _jth(keys, j)
        if strict:
            spare = j - _above(keys, key)
            for i in range(nodes):
                tied = keys[i] == key and spare > 0
                spare -= tied
                active[item, i] = (keys[i] > key or tied) and (not masked or inside[i] != 0)
        else:
            raw[0] = key ^ ((key >> sign) & kept)
            jth = value[0] if key != ~kept else -z.dtype.type(np.inf)
            threshold = jth - tolerance * magnitude
            _mark(z[item], threshold, inside, masked, active[item])


@exact
@no_type_check
def _above(keys, threshold):
    count = 0
    for i in range(len(keys)):
        count += keys[i] > threshold
    return count


@exact
@no_type_check
def _mark(z, threshold, inside, masked, active):
    if masked:
        for i in range(len(z)):
            active[i] = np.uint8(z[i] >= threshold) & inside[i]
    else:
        for i in range(len(z)):
            active[i] = np.uint8(z[i] >= threshold)


# Chebyshev polynomials of maps, and their adjoint


@exact
@no_type_check
def chebyshev(y, s, grid, diagonal, degree, first, last, out):
    """t_0 .. t_degree of the maps ``first`` to ``last``; ``out`` is (batch, degree + 1, maps, nodes)."""
    height, width, stride, _, wrap_rows, wrap_columns = grid
    one, size, maps = y.dtype.type(1), len(s), out.shape[2]
    lo, hi = stride + 1, height * stride + 1 + width
    t, p = np.zeros((3, size), y.dtype), np.zeros((2, size), y.dtype)
    nothing = np.zeros(size, y.dtype)
    for item in range(first, last):
        of_image = out[item // maps]
        _copy(of_image[0, item % maps], y[item])
        if degree:
            _load(y[item], y[item], False, s, grid, nothing, t[0], p[0])
        for k in range(1, degree + 1):
            if k == 1:
                _recur(p[0], s, nothing, one, one, grid, diagonal, t[1], p[1], lo, hi)
            else:
                before = t[(k + 1) % 3]
                _recur(p[(k + 1) % 2], s, before, one + one, -one, grid, diagonal, t[k % 3], p[k % 2], lo, hi)
            if wrap_rows or wrap_columns:
                _wrap(p[k % 2], grid)
            _gather(of_image[k, item % maps], t[k % 3], grid)


@exact
@no_type_check
def chebyshev_sum(u, s, grid, diagonal, degree, first, last, out):
    """The sum of T_m u_m by Clenshaw's recurrence; ``u`` is (batch, degree + 1, maps, nodes)."""
    height, width, stride, _, wrap_rows, wrap_columns = grid
    one, size, maps = u.dtype.type(1), len(s), u.shape[2]
    lo, hi = stride + 1, height * stride + 1 + width
    b, p = np.zeros((3, size), u.dtype), np.zeros((2, size), u.dtype)
    nothing, less = np.zeros(size, u.dtype), np.zeros(size, u.dtype)
    for item in range(first, last):
        of_image = u[item // maps]
        if not degree:
            _copy(out[item], of_image[0, item % maps])
            continue
        top = of_image[degree, item % maps]
        _load(top, top, False, s, grid, nothing, b[degree % 3], p[degree % 2])
        for m in range(degree - 1, -1, -1):
            after = b[(m + 2) % 3] if m + 2 <= degree else nothing
            _spread(less, of_image[m, item % maps], grid)
            _less(after, less)
            factor = one + one if m else one
            _recur(p[(m + 1) % 2], s, less, factor, -one, grid, diagonal, b[m % 3], p[m % 2], lo, hi)
            if wrap_rows or wrap_columns:
                _wrap(p[m % 2], grid)
        _gather(out[item], b[0], grid)


@exact
@no_type_check
def _copy(out, row):
    for i in range(len(out)):
        out[i] = row[i]


@exact
@no_type_check
def _less(a, b):
    """b = a - b."""
    for i in range(len(b)):
        b[i] = a[i] - b[i]


# oriented products
#
# Fields lie in a flat layout with a border of two: one loop over rows and border alike vectorises at any width,
# and what it leaves in the border is put right after it.


@exact
@no_type_check
def _inside(grid, ring):
    """Of the flat layout with a border of two: the stride, and the first and last node of the image and ``ring`` more
    on each side."""
    height, width = grid[0], grid[1]
    stride = width + 4
    return stride, (2 - ring) * (stride + 1), (height + 1 + ring) * stride + 2 + width + ring


@exact
@no_type_check
def _framed(p, image, grid):
    """An image into the flat layout; the border stays what it is."""
    height, width = grid[0], grid[1]
    for r in range(height):
        at = (r + 2) * (width + 4) + 2
        _copy(p[at : at + width], image[r * width : (r + 1) * width])


@exact
@no_type_check
def _unframed(image, p, grid):
    height, width = grid[0], grid[1]
    for r in range(height):
        at = (r + 2) * (width + 4) + 2
        _copy(image[r * width : (r + 1) * width], p[at : at + width])


@exact
@no_type_check
def _surround(p, grid):
    """The inner ring of the border: the nearest pixel, or on the torus what is across."""
    height, width, wrap_rows, wrap_columns = grid[0], grid[1], grid[4], grid[5]
    image = p.reshape(height + 4, width + 4)
    _copy(image[1, 2 : 2 + width], image[height + 1 if wrap_rows else 2, 2 : 2 + width])
    _copy(image[height + 2, 2 : 2 + width], image[2 if wrap_rows else height + 1, 2 : 2 + width])
    left, right = (width + 1, 2) if wrap_columns else (2, width + 1)
    for r in range(1, height + 3):
        image[r, 1] = image[r, left]
        image[r, width + 2] = image[r, right]


@exact
@no_type_check
def _bare(p, grid):
    """Nothing in the border beside the rows; above and below nothing is ever written."""
    height, width = grid[0], grid[1]
    image = p.reshape(height + 4, width + 4)
    for r in range(2, height + 2):
        image[r, 0] = image[r, 1] = image[r, width + 2] = image[r, width + 3] = 0


@exact
@no_type_check
def _fold(p, grid):
    """The adjoint of :func:`_surround`."""
    height, width, wrap_rows, wrap_columns = grid[0], grid[1], grid[4], grid[5]
    image = p.reshape(height + 4, width + 4)
    left, right = (width + 1, 2) if wrap_columns else (2, width + 1)
    for r in range(1, height + 3):
        image[r, left] += image[r, 1]
        image[r, right] += image[r, width + 2]
    _plus(image[height + 1 if wrap_rows else 2], image[1])
    _plus(image[2 if wrap_rows else height + 1], image[height + 2])


@exact
@no_type_check
def _plus(total, more):
    for i in range(len(total)):
        total[i] += more[i]


@exact
@no_type_check
def _slope(above, here, below, x, y):
    """The gradient; the three rows start one to the left of the first node."""
    a, b = x.dtype.type(10 / 32), x.dtype.type(3 / 32)
    for c in range(len(x)):
        falling, rising = below[c + 2] - above[c], above[c + 2] - below[c]
        x[c] = a * (here[c + 2] - here[c]) + b * (falling + rising)
        y[c] = a * (below[c + 1] - above[c + 1]) + b * (falling - rising)


@exact
@no_type_check
def _slopes(p, x, y, grid):
    stride, lo, hi = _inside(grid, 0)
    above, below = p[lo - stride - 1 : hi - stride + 1], p[lo + stride - 1 : hi + stride + 1]
    _slope(above, p[lo - 1 : hi + 1], below, x[lo:hi], y[lo:hi])


@exact
@no_type_check
def _second(x_x, x_y, y_x, y_y):
    """From the gradients of the two parts of a gradient: x_x = f_xx - f_yy and x_y = f_xy + f_yx."""
    for i in range(len(x_x)):
        x_x[i] = x_x[i] - y_y[i]
        x_y[i] = x_y[i] + y_x[i]


@exact
@no_type_check
def _first_and_second(image, grid, p, first, second, spare):
    """``first`` = the gradient; ``second`` = its twist."""
    _, lo, hi = _inside(grid, 0)
    _framed(p, image, grid)
    _surround(p, grid)
    _slopes(p, first[0], first[1], grid)
    _surround(first[0], grid)
    _surround(first[1], grid)
    _slopes(first[0], second[0], second[1], grid)
    _slopes(first[1], spare[0], spare[1], grid)
    _second(second[0, lo:hi], second[1, lo:hi], spare[0, lo:hi], spare[1, lo:hi])


@exact
@no_type_check
def _product(fx, fy, gx, gy, real, imaginary):
    for i in range(len(real)):
        real[i] = fx[i] * gx[i] + fy[i] * gy[i]
        imaginary[i] = fy[i] * gx[i] - fx[i] * gy[i]


@exact
@no_type_check
def products(mixtures, grid, kinds, first, last, out):
    """Products of first and second order of the pairs ``first`` to ``last``; ``mixtures`` is (batch, 2, pairs, nodes)
    and ``out`` (batch, kinds, pairs, nodes): the real parts, and behind each the imaginary one if there are four."""
    stride, lo, hi = _inside(grid, 0)
    size, pairs, each = (grid[0] + 4) * stride, out.shape[2], kinds // 2
    p = np.zeros(size, mixtures.dtype)
    field = np.zeros((5, 2, size), mixtures.dtype)
    found = np.zeros((2, size), mixtures.dtype)
    for item in range(first, last):
        image, pair = item // pairs, item % pairs
        for which in range(2):
            _first_and_second(mixtures[image, which, pair], grid, p, field[2 * which], field[2 * which + 1], field[4])
        for level in range(2):
            f, g = field[level, :, lo:hi], field[2 + level, :, lo:hi]
            _product(f[0], f[1], g[0], g[1], found[0, lo:hi], found[1, lo:hi])
            for part in range(each):
                _unframed(out[image, level * each + part, pair], found[part], grid)


@exact
@no_type_check
def _pull_product(fx, fy, gx, gy, real, imaginary, d_fx, d_fy, d_gx, d_gy):
    """Gradients by f and g, given those by the products."""
    for i in range(len(real)):
        d_fx[i] = real[i] * gx[i] - imaginary[i] * gy[i]
        d_fy[i] = real[i] * gy[i] + imaginary[i] * gx[i]
        d_gx[i] = real[i] * fx[i] + imaginary[i] * fy[i]
        d_gy[i] = real[i] * fy[i] - imaginary[i] * fx[i]


@exact
@no_type_check
def _against(xa, xh, xb, ya, yh, yb, sign, out):
    """The adjoint of the stencil, of the fields x and sign * y."""
    a, b = out.dtype.type(10 / 32), out.dtype.type(3 / 32)
    for j in range(len(out)):
        straight = (xh[j] - xh[j + 2]) + sign * (ya[j + 1] - yb[j + 1])
        falling = (xa[j] + sign * ya[j]) - (xb[j + 2] + sign * yb[j + 2])
        rising = (xb[j] - sign * yb[j]) - (xa[j + 2] - sign * ya[j + 2])
        out[j] = a * straight + b * (falling + rising)


@exact
@no_type_check
def _adjoint(x, y, sign, p, grid):
    """The adjoint of border and gradient: into ``p``; x and y have nothing in their borders."""
    stride, lo, hi = _inside(grid, 1)
    i, j, k = lo - stride - 1, lo - 1, lo + stride - 1
    n = hi - lo + 2
    _against(x[i : i + n], x[j : j + n], x[k : k + n], y[i : i + n], y[j : j + n], y[k : k + n], sign, p[lo:hi])
    _fold(p, grid)


@exact
@no_type_check
def products_backward(g_out, mixtures, grid, kinds, first, last, g_mixtures):
    """The gradient by the mixtures: the fields are computed again, then each stencil is run backwards."""
    stride, lo, hi = _inside(grid, 0)
    size, pairs, each = (grid[0] + 4) * stride, g_out.shape[2], kinds // 2
    one = mixtures.dtype.type(1)
    p = np.zeros(size, mixtures.dtype)
    field = np.zeros((5, 2, size), mixtures.dtype)
    upstream = np.zeros((2, size), mixtures.dtype)
    pulled = np.zeros((4, 2, size), mixtures.dtype)  # by f', f'', g', g''
    for item in range(first, last):
        image, pair = item // pairs, item % pairs
        for which in range(2):
            _first_and_second(mixtures[image, which, pair], grid, p, field[2 * which], field[2 * which + 1], field[4])
        for level in range(2):
            for part in range(each):
                _framed(upstream[part], g_out[image, level * each + part, pair], grid)
            f, g = field[level, :, lo:hi], field[2 + level, :, lo:hi]
            by_f, by_g = pulled[level, :, lo:hi], pulled[2 + level, :, lo:hi]
            _pull_product(
                f[0], f[1], g[0], g[1], upstream[0, lo:hi], upstream[1, lo:hi], by_f[0], by_f[1], by_g[0], by_g[1]
            )
        for which in range(2):
            by_first, by_second = pulled[2 * which], pulled[2 * which + 1]
            _bare(by_second[0], grid)
            _bare(by_second[1], grid)
            for axis in range(2):
                _adjoint(by_second[axis], by_second[1 - axis], -one if axis else one, p, grid)
                _plus(by_first[axis, lo:hi], p[lo:hi])
                _bare(by_first[axis], grid)
            _adjoint(by_first[0], by_first[1], one, p, grid)
            _unframed(g_mixtures[image, which, pair], p, grid)


# maps standardised by known moments, and by their own


@exact
@no_type_check
def _rectify(z, mean, scale, bias, out):
    zero = out.dtype.type(0)
    for i in range(len(out)):
        x = (z[i] - mean) * scale + bias
        out[i] = zero if x < zero else x  # what is not a number stays so


@exact
@no_type_check
def _root(z, mean, scale, part, out):
    one = out.dtype.type(1)
    for i in range(len(out)):
        x = (z[i] - mean) * scale
        out[i] = x * (one / np.sqrt(one + abs(x) * part))


@exact
@no_type_check
def rectified(z, mean, variance, eps, bias, first, last, out):
    """ReLU of the maps ``first`` to ``last`` of all images, standardised, and a bias each; (batch, maps, nodes)."""
    number, maps = z.dtype.type, z.shape[1]
    for item in range(first, last):
        image, which = item // maps, item % maps
        scale = number(1) / np.sqrt(variance[which] + number(eps))
        _rectify(z[image, which], mean[which], scale, bias[which], out[image, which])


@exact
@no_type_check
def rooted(z, mean, variance, eps, large, y, first, last, out):
    """The maps of ``z``, standardised, and beyond ``large`` deviations about their root, behind those of ``y``; both of
    the maps ``first`` to ``last`` of ``out``, (batch, maps, nodes)."""
    number, ahead, maps = z.dtype.type, y.shape[1], out.shape[1]
    part = number(1) / number(large)
    for item in range(first, last):
        image, which = item // maps, item % maps
        if which < ahead:
            _copy(out[image, which], y[image, which])
            continue
        scale = number(1) / np.sqrt(variance[which - ahead] + number(eps))
        _root(z[image, which - ahead], mean[which - ahead], scale, part, out[image, which])


@summed
@no_type_check
def _sum(z):
    total = 0.0
    for i in range(len(z)):
        total += np.float64(z[i])
    return total


@summed
@no_type_check
def _squares(z, centre):
    """The sum of the squares of z - centre."""
    squares = 0.0
    for i in range(len(z)):
        d = np.float64(z[i]) - centre
        squares += d * d
    return squares


@exact
@no_type_check
def _moments(z, which):
    """Mean and variance of a map over all images and nodes."""
    count, total, squares = z.shape[0] * z.shape[2], 0.0, 0.0
    for image in range(len(z)):
        total += _sum(z[image, which])
    mean = total / count
    for image in range(len(z)):
        squares += _squares(z[image, which], mean)
    return mean, squares / count


@exact
@no_type_check
def standardise(z, bias, biased, y, eps, large, first, last, mean, variance, out):
    """The maps of ``z``, standardised by their own moments and rectified or rooted, behind those of ``y``; both of the
    maps ``first`` to ``last`` of ``out``, (batch, maps, nodes). The second and third pass find a map in the cache."""
    number, ahead = z.dtype.type, y.shape[1]
    part = number(1) / number(large) if large else number(0)
    for which in range(first, last):
        at = which - ahead
        if at >= 0:
            mean[at], variance[at] = _moments(z, at)
            scale = number(1) / np.sqrt(variance[at] + number(eps))
        for image in range(len(out)):
            if at < 0:
                _copy(out[image, which], y[image, which])
            elif biased:
                _rectify(z[image, at], mean[at], scale, bias[at], out[image, which])
            else:
                _root(z[image, at], mean[at], scale, part, out[image, which])


@exact
@no_type_check
def _pull_of_root(g, z, mean, scale, half, one):
    """The standardised number x, the gradient by it, and the product of the two. Not by 1 / sqrt: of that LLVM made
    other instructions, and other bits, in code that is new than in code from the cache."""
    x = (z - mean) * scale
    h = abs(x) * half
    within = one + (h + h)
    up = g * ((one + h) / (within * np.sqrt(within)))
    return x, up, up * x


@summed
@no_type_check
def _pulls_of_rectified(g, z, mean, scale, bias):
    """The sums of the gradient by x, and of it times x; x is the standardised map."""
    zero, total, along = z.dtype.type(0), 0.0, 0.0
    for i in range(len(z)):
        x = (z[i] - mean) * scale
        up = g[i] if x + bias > zero else zero
        total += np.float64(up)
        along += np.float64(up * x)
    return total, along


@summed
@no_type_check
def _pulls_of_rooted(g, z, mean, scale, half):
    one, total, along = z.dtype.type(1), 0.0, 0.0
    for i in range(len(z)):
        _, up, product = _pull_of_root(g[i], z[i], mean, scale, half, one)
        total += np.float64(up)
        along += np.float64(product)
    return total, along


@exact
@no_type_check
def _pull_rectified(g, z, mean, scale, bias, total, along, out):
    """The gradient by z, of which ``total`` and ``along`` are those sums over their count."""
    zero = z.dtype.type(0)
    for i in range(len(out)):
        x = (z[i] - mean) * scale
        up = g[i] if x + bias > zero else zero
        out[i] = scale * (up - total - x * along)


@exact
@no_type_check
def _pull_rooted(g, z, mean, scale, half, total, along, out):
    one = z.dtype.type(1)
    for i in range(len(out)):
        x, up, _ = _pull_of_root(g[i], z[i], mean, scale, half, one)
        out[i] = scale * (up - total - x * along)


@exact
@no_type_check
def standardise_backward(g, apart, z, mean, variance, bias, biased, eps, large, first, last, g_z, g_bias):
    """The gradients by ``z`` and ``bias``; a row of ``g`` is a map, and those of the next image are ``apart``."""
    number, count = z.dtype.type, z.shape[0] * z.shape[2]
    half = number(0.5) / number(large) if large else number(0)
    for which in range(first, last):
        centre, scale = mean[which], number(1) / np.sqrt(variance[which] + number(eps))
        total, along = 0.0, 0.0
        for image in range(len(z)):
            row = g[image * apart + which]
            if biased:
                one, other = _pulls_of_rectified(row, z[image, which], centre, scale, bias[which])
            else:
                one, other = _pulls_of_rooted(row, z[image, which], centre, scale, half)
            total += one
            along += other
        g_bias[which] = total
        a, b = number(total / count), number(along / count)
        for image in range(len(z)):
            row, out = g[image * apart + which], g_z[image, which]
            if biased:
                _pull_rectified(row, z[image, which], centre, scale, bias[which], a, b, out)
            else:
                _pull_rooted(row, z[image, which], centre, scale, half, a, b, out)
