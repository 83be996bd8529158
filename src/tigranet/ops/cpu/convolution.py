"""CPU kernels of the spectral convolution."""

from typing import no_type_check

import numpy as np

from tigranet.ops.cpu.compile import compile_exact, compile_reassociated, kernel
from tigranet.ops.cpu.stencil import PIECE, copy, from_flat, multiply, recur, to_flat, wrap


@compile_exact
@no_type_check
def _add(total, weight, signal):
    for i in range(len(total)):
        total[i] += weight * signal[i]


@compile_exact
@no_type_check
def _add_five(total, weights, u, v, w, x, y):
    """Add five terms, one after the other at each node. This takes less than half the memory traffic of one by one."""
    a, b, c, d, e = weights[0], weights[1], weights[2], weights[3], weights[4]
    for i in range(len(total)):
        total[i] = ((((total[i] + a * u[i]) + b * v[i]) + c * w[i]) + d * x[i]) + e * y[i]


@compile_exact
@no_type_check
def _combine(weights, signals, lo, hi, total):
    """Sum weights[j] * signals[j] over j, in this order at every node, for the nodes ``lo`` to ``hi``."""
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


@compile_exact
@no_type_check
def _powers(y, beta, s, layout, diagonal, degree, t, p, powers):
    """Store L^m of the mixed map in ``powers``, m = 0 .. degree."""
    height, width, stride = layout[0], layout[1], layout[2]
    one = y.dtype.type(1)
    for lo in range(0, height * width, PIECE):
        hi = min(lo + PIECE, height * width)
        _combine(beta, y, lo, hi, powers[0, lo:hi])
    to_flat(t[0], powers[0], layout)
    multiply(t[0], s, p[0])
    for m in range(1, degree + 1):
        before, new = (m + 1) % 2, m % 2
        wrap(p[before], layout)
        recur(
            p[before], s, t[before], one, one, layout, diagonal, t[new], p[new],
            stride + 1, height * stride + 1 + width,
        )  # fmt: skip
        from_flat(powers[m], t[new], layout)


@kernel
@no_type_check
def convolution(y, alpha, beta, omega, masked, s, layout, diagonal, first, last, z):
    """Compute z_i = sum_m alpha_im L^m sum_k beta_k y_k, times omega, for the images ``first`` to ``last``."""
    nodes = y.shape[2]
    outputs, degree = alpha.shape[0], alpha.shape[1] - 1
    t = np.zeros((2, len(s)), y.dtype)
    p = np.zeros((2, len(s)), y.dtype)
    powers = np.empty((degree + 1, nodes), y.dtype)
    for item in range(first, last):
        _powers(y[item], beta, s, layout, diagonal, degree, t, p, powers)
        for lo in range(0, nodes, PIECE):
            hi = min(lo + PIECE, nodes)
            for i in range(outputs):
                _combine(alpha[i], powers, lo, hi, z[item, i, lo:hi])
                if masked:
                    _multiply_by_mask(z[item, i, lo:hi], omega[item, lo:hi])


@compile_exact
@no_type_check
def _multiply_by_mask(z, omega):
    for i in range(len(z)):
        z[i] = z[i] * z.dtype.type(omega[i])


@compile_reassociated
@no_type_check
def _dot(a, b):
    total = a.dtype.type(0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel
@no_type_check
def convolution_backward(
    g, y, alpha, beta, omega, masked, s, layout, diagonal, needs_y, first, last, g_y, g_alpha, g_beta
):
    """Compute the gradients by the maps and the coefficients, one set of coefficients per image.

    The gradient by the mixed map is c_0 + L (c_1 + L (c_2 + ...)) with c_m = sum_i alpha_im g_i. The gradients by
    alpha and beta are products with the powers and the maps. ``g_y`` is filled if ``needs_y``.
    """
    height, width, stride = layout[0], layout[1], layout[2]
    nodes, inputs = y.shape[2], y.shape[1]
    outputs, degree = alpha.shape[0], alpha.shape[1] - 1
    one, zero = y.dtype.type(1), y.dtype.type(0)
    lowest, highest = stride + 1, height * stride + 1 + width
    t = np.zeros((2, len(s)), y.dtype)
    p = np.zeros((2, len(s)), y.dtype)
    powers = np.empty((degree + 1, nodes), y.dtype)
    local = np.empty((degree + 1, nodes), y.dtype)
    upstream = np.empty((outputs, min(PIECE, nodes)), y.dtype)
    transposed = alpha.T.copy()
    for item in range(first, last):
        _powers(y[item], beta, s, layout, diagonal, degree, t, p, powers)
        sums = np.zeros((outputs, degree + 1))
        for lo in range(0, nodes, PIECE):
            hi = min(lo + PIECE, nodes)
            for i in range(outputs):
                if masked:
                    multiply(g[item, i, lo:hi], omega[item, lo:hi], upstream[i, : hi - lo])
                else:
                    copy(upstream[i, : hi - lo], g[item, i, lo:hi])
                for m in range(degree + 1):
                    sums[i, m] += _dot(upstream[i, : hi - lo], powers[m, lo:hi])
            for m in range(degree + 1):
                _combine(transposed[m], upstream, 0, hi - lo, local[m, lo:hi])
        for i in range(outputs):  # an assignment of arrays compares their shapes, which takes 2 seconds to compile
            copy(g_alpha[item, i], sums[i])
        g_mixed = local[degree]
        for m in range(degree - 1, -1, -1):
            to_flat(t[0], g_mixed, layout)
            multiply(t[0], s, p[0])
            wrap(p[0], layout)
            recur(p[0], s, t[0], one, one, layout, diagonal, t[1], p[1], lowest, highest)
            from_flat(powers[m], t[1], layout)  # the power stored here is not needed any more
            _add(local[m], one, powers[m])
            g_mixed = local[m]
        for k in range(inputs):
            total = 0.0
            for lo in range(0, nodes, PIECE):
                total += _dot(y[item, k, lo : lo + PIECE], g_mixed[lo : lo + PIECE])
            g_beta[item, k] = total
            if needs_y:
                g_y[item, k] = zero
                _add(g_y[item, k], beta[k], g_mixed)
