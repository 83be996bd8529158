"""CPU kernels of the products of image gradients.

Fields lie in a flat layout with a border of two nodes. One loop over rows and border together vectorises at any width,
and the values that it leaves in the border are corrected afterwards.
"""

from typing import no_type_check

import numpy as np

from tigranet.ops.cpu.compile import compile_exact, compile_inlined, kernel
from tigranet.ops.cpu.stencil import copy


@compile_exact
@no_type_check
def _extent(layout, ring):
    """Return the stride, and the first and last entry of the image extended by ``ring`` nodes on each side."""
    height, width = layout[0], layout[1]
    stride = width + 4
    return stride, (2 - ring) * (stride + 1), (height + 1 + ring) * stride + 2 + width + ring


@compile_exact
@no_type_check
def _to_field(p, image, layout):
    """Copy an image into the layout with a border; the border stays as it is."""
    height, width = layout[0], layout[1]
    for r in range(height):
        at = (r + 2) * (width + 4) + 2
        copy(p[at : at + width], image[r * width : (r + 1) * width])


@compile_exact
@no_type_check
def _from_field(image, p, layout):
    """Copy an image out of the layout with a border."""
    height, width = layout[0], layout[1]
    for r in range(height):
        at = (r + 2) * (width + 4) + 2
        copy(image[r * width : (r + 1) * width], p[at : at + width])


@compile_exact
@no_type_check
def _surround(p, layout):
    """Fill the inner ring of the border with the nearest pixel, or on the torus with the pixel across."""
    height, width, wrap_rows, wrap_columns = layout[0], layout[1], layout[4], layout[5]
    stride = width + 4
    above, below = (height + 1, 2) if wrap_rows else (2, height + 1)
    copy(p[stride : 2 * stride], p[above * stride : (above + 1) * stride])
    copy(p[(height + 2) * stride : (height + 3) * stride], p[below * stride : (below + 1) * stride])
    if wrap_columns:
        for r in range(1, height + 3):
            row = p[r * stride + 1 : r * stride + stride]
            row[0], row[width + 1] = row[width], row[1]
    else:
        for r in range(1, height + 3):
            row = p[r * stride + 1 : r * stride + stride]
            row[0], row[width + 1] = row[1], row[width]


@compile_exact
@no_type_check
def _clear_border(p, layout):
    """Set the border beside the rows to zero; above and below nothing is ever written."""
    height, width = layout[0], layout[1]
    image = p.reshape(height + 4, width + 4)
    for r in range(2, height + 2):
        image[r, 0] = image[r, 1] = image[r, width + 2] = image[r, width + 3] = 0


@compile_exact
@no_type_check
def _fold(p, layout):
    """Apply the adjoint of :func:`_surround`."""
    height, width, wrap_rows, wrap_columns = layout[0], layout[1], layout[4], layout[5]
    image = p.reshape(height + 4, width + 4)
    left, right = (width + 1, 2) if wrap_columns else (2, width + 1)
    for r in range(1, height + 3):
        image[r, left] += image[r, 1]
        image[r, right] += image[r, width + 2]
    _add(image[height + 1 if wrap_rows else 2], image[1])
    _add(image[2 if wrap_rows else height + 1], image[height + 2])


@compile_exact
@no_type_check
def _add(total, term):
    for i in range(len(total)):
        total[i] += term[i]


@compile_inlined
@no_type_check
def _gradient_of_rows(above, here, below, x, y):
    """Compute the gradient (x, y); the three rows start one to the left of the first node."""
    a, b = x.dtype.type(10 / 32), x.dtype.type(3 / 32)
    for c in range(len(x)):
        falling, rising = below[c + 2] - above[c], above[c + 2] - below[c]
        x[c] = a * (here[c + 2] - here[c]) + b * (falling + rising)
        y[c] = a * (below[c + 1] - above[c + 1]) + b * (falling - rising)


@compile_exact
@no_type_check
def _gradient(p, x, y, layout):
    stride, lo, hi = _extent(layout, 0)
    above, below = p[lo - stride - 1 : hi - stride + 1], p[lo + stride - 1 : hi + stride + 1]
    _gradient_of_rows(above, p[lo - 1 : hi + 1], below, x[lo:hi], y[lo:hi])


@compile_inlined
@no_type_check
def _twist_of_rows(xa, xh, xb, ya, yh, yb, real, imaginary):
    """Compute f_xx - f_yy and f_xy + f_yx from the rows above, here and below of x = f_x and of y = f_y."""
    a, b = real.dtype.type(10 / 32), real.dtype.type(3 / 32)
    for c in range(len(real)):
        x_falling, x_rising = xb[c + 2] - xa[c], xa[c + 2] - xb[c]
        y_falling, y_rising = yb[c + 2] - ya[c], ya[c + 2] - yb[c]
        x_x = a * (xh[c + 2] - xh[c]) + b * (x_falling + x_rising)
        x_y = a * (xb[c + 1] - xa[c + 1]) + b * (x_falling - x_rising)
        y_x = a * (yh[c + 2] - yh[c]) + b * (y_falling + y_rising)
        y_y = a * (yb[c + 1] - ya[c + 1]) + b * (y_falling - y_rising)
        real[c] = x_x - y_y
        imaginary[c] = x_y + y_x


@compile_exact
@no_type_check
def _twist(x, y, real, imaginary, layout):
    stride, lo, hi = _extent(layout, 0)
    i, j, k, n = lo - stride - 1, lo - 1, lo + stride - 1, hi - lo + 2
    _twist_of_rows(
        x[i : i + n], x[j : j + n], x[k : k + n], y[i : i + n], y[j : j + n], y[k : k + n],
        real[lo:hi], imaginary[lo:hi],
    )  # fmt: skip


@compile_exact
@no_type_check
def _derivatives(image, layout, p, first_order, second_order):
    """Compute the gradient, and (f_xx - f_yy, 2 f_xy), of one image."""
    _to_field(p, image, layout)
    _surround(p, layout)
    _gradient(p, first_order[0], first_order[1], layout)
    _surround(first_order[0], layout)
    _surround(first_order[1], layout)
    _twist(first_order[0], first_order[1], second_order[0], second_order[1], layout)


@compile_inlined
@no_type_check
def _product(fx, fy, gx, gy, real, imaginary):
    for i in range(len(real)):
        real[i] = fx[i] * gx[i] + fy[i] * gy[i]
        imaginary[i] = fy[i] * gx[i] - fx[i] * gy[i]


@kernel
@no_type_check
def oriented_products(mixtures, layout, kinds, first, last, out):
    """Compute the products of first and second order of the pairs ``first`` to ``last``.

    ``mixtures`` is (batch, 2, pairs, nodes) and ``out`` (batch, kinds, pairs, nodes): the real parts, each followed by
    the imaginary part if ``kinds`` is 4.
    """
    stride, lo, hi = _extent(layout, 0)
    size, pairs, parts = (layout[0] + 4) * stride, out.shape[2], kinds // 2
    p = np.zeros(size, mixtures.dtype)
    field = np.zeros((2, 2, 2, size), mixtures.dtype)  # of f and g, of first and second order
    products = np.zeros((2, size), mixtures.dtype)
    for item in range(first, last):
        image, pair = item // pairs, item % pairs
        for which in range(2):
            _derivatives(mixtures[image, which, pair], layout, p, field[which, 0], field[which, 1])
        for level in range(2):
            f, g = field[0, level], field[1, level]
            _product(f[0, lo:hi], f[1, lo:hi], g[0, lo:hi], g[1, lo:hi], products[0, lo:hi], products[1, lo:hi])
            for part in range(parts):
                _from_field(out[image, level * parts + part, pair], products[part], layout)


@compile_inlined
@no_type_check
def _product_backward(fx, fy, gx, gy, real, imaginary, d_fx, d_fy, d_gx, d_gy):
    """Compute the gradients by f and g from those by the products."""
    for i in range(len(real)):
        d_fx[i] = real[i] * gx[i] - imaginary[i] * gy[i]
        d_fy[i] = real[i] * gy[i] + imaginary[i] * gx[i]
        d_gx[i] = real[i] * fx[i] + imaginary[i] * fy[i]
        d_gy[i] = real[i] * fy[i] - imaginary[i] * fx[i]


@compile_inlined
@no_type_check
def _adjoint_of_rows(xa, xh, xb, ya, yh, yb, sign, out):
    """Apply the adjoint of the stencil to the fields x and sign * y."""
    a, b = out.dtype.type(10 / 32), out.dtype.type(3 / 32)
    for j in range(len(out)):
        straight = (xh[j] - xh[j + 2]) + sign * (ya[j + 1] - yb[j + 1])
        falling = (xa[j] + sign * ya[j]) - (xb[j + 2] + sign * yb[j + 2])
        rising = (xb[j] - sign * yb[j]) - (xa[j + 2] - sign * ya[j + 2])
        out[j] = a * straight + b * (falling + rising)


@compile_exact
@no_type_check
def _gradient_adjoint(x, y, sign, p, layout):
    """Apply the adjoint of border and gradient, into ``p``; the borders of x and y are zero."""
    stride, lo, hi = _extent(layout, 1)
    i, j, k = lo - stride - 1, lo - 1, lo + stride - 1
    n = hi - lo + 2
    _adjoint_of_rows(x[i : i + n], x[j : j + n], x[k : k + n], y[i : i + n], y[j : j + n], y[k : k + n], sign, p[lo:hi])
    _fold(p, layout)


@kernel
@no_type_check
def oriented_products_backward(g_out, mixtures, layout, kinds, first, last, g_mixtures):
    """Compute the gradient by the mixtures: the fields again, then the adjoint of each stencil."""
    stride, lo, hi = _extent(layout, 0)
    size, pairs, parts = (layout[0] + 4) * stride, g_out.shape[2], kinds // 2
    one = mixtures.dtype.type(1)
    p = np.zeros(size, mixtures.dtype)
    field = np.zeros((2, 2, 2, size), mixtures.dtype)
    upstream = np.zeros((2, size), mixtures.dtype)
    g_field = np.zeros((4, 2, size), mixtures.dtype)  # by f', f'', g', g''
    for item in range(first, last):
        image, pair = item // pairs, item % pairs
        for which in range(2):
            _derivatives(mixtures[image, which, pair], layout, p, field[which, 0], field[which, 1])
        for level in range(2):
            for part in range(parts):
                _to_field(upstream[part], g_out[image, level * parts + part, pair], layout)
            f, g, by_f, by_g = field[0, level], field[1, level], g_field[level], g_field[2 + level]
            _product_backward(
                f[0, lo:hi], f[1, lo:hi], g[0, lo:hi], g[1, lo:hi], upstream[0, lo:hi], upstream[1, lo:hi],
                by_f[0, lo:hi], by_f[1, lo:hi], by_g[0, lo:hi], by_g[1, lo:hi],
            )  # fmt: skip
        for which in range(2):
            by_first, by_second = g_field[2 * which], g_field[2 * which + 1]
            _clear_border(by_second[0], layout)
            _clear_border(by_second[1], layout)
            for axis in range(2):
                _gradient_adjoint(by_second[axis], by_second[1 - axis], -one if axis else one, p, layout)
                _add(by_first[axis, lo:hi], p[lo:hi])
                _clear_border(by_first[axis], layout)
            _gradient_adjoint(by_first[0], by_first[1], one, p, layout)
            _from_field(g_mixtures[image, which, pair], p, layout)
