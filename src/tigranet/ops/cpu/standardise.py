"""CPU kernels that standardise maps, by known moments or by their own, and what follows in the same pass."""

from typing import no_type_check

import numpy as np

from tigranet.ops.cpu.compile import compile_exact, compile_reassociated, kernel
from tigranet.ops.cpu.stencil import copy


@compile_exact
@no_type_check
def _rectify(z, mean, scale, bias, out):
    zero = out.dtype.type(0)
    for i in range(len(out)):
        x = (z[i] - mean) * scale + bias
        out[i] = zero if x < zero else x  # a NaN stays a NaN


@compile_exact
@no_type_check
def _compress(z, mean, scale, inverse_large, out):
    """Compute x / sqrt(1 + abs(x) / large); with ``inverse_large`` 0 this is x itself."""
    one = out.dtype.type(1)
    for i in range(len(out)):
        x = (z[i] - mean) * scale
        out[i] = x * (one / np.sqrt(one + abs(x) * inverse_large))


@kernel
@no_type_check
def rectified_eval(z, mean, variance, eps, bias, first, last, out):
    """Standardise the maps ``first`` to ``last`` of all images by known moments, add a bias per map, apply ReLU.

    ``z`` and ``out`` are (batch, maps, nodes).
    """
    number, maps = z.dtype.type, z.shape[1]
    for item in range(first, last):
        image, which = item // maps, item % maps
        scale = number(1) / np.sqrt(variance[which] + number(eps))
        _rectify(z[image, which], mean[which], scale, bias[which], out[image, which])


@kernel
@no_type_check
def compressed_eval(z, mean, variance, eps, large, y, first, last, out):
    """Standardise maps by known moments, compress values beyond ``large`` deviations, put them after the maps ``y``.

    Items are the maps of ``out``, (batch, maps of y and z, nodes). With ``large`` 0 nothing is compressed.
    """
    number, num_before, maps = z.dtype.type, y.shape[1], out.shape[1]
    inverse_large = number(1) / number(large) if large else number(0)
    for item in range(first, last):
        image, which = item // maps, item % maps
        if which < num_before:
            copy(out[image, which], y[image, which])
            continue
        at = which - num_before
        scale = number(1) / np.sqrt(variance[at] + number(eps))
        _compress(z[image, at], mean[at], scale, inverse_large, out[image, which])


@compile_reassociated
@no_type_check
def _sum(z):
    total = 0.0
    for i in range(len(z)):
        total += np.float64(z[i])
    return total


@compile_reassociated
@no_type_check
def _sum_of_squares(z, centre):
    """Return the sum of the squares of z - centre."""
    squares = 0.0
    for i in range(len(z)):
        d = np.float64(z[i]) - centre
        squares += d * d
    return squares


@compile_exact
@no_type_check
def _moments(z, which):
    """Return mean and variance of a map over all images and nodes."""
    count, total, squares = z.shape[0] * z.shape[2], 0.0, 0.0
    for image in range(len(z)):
        total += _sum(z[image, which])
    mean = total / count
    for image in range(len(z)):
        squares += _sum_of_squares(z[image, which], mean)
    return mean, squares / count


@kernel
@no_type_check
def standardise(z, bias, has_bias, y, eps, large, first, last, mean, variance, out):
    """Standardise maps by their own moments, rectify or compress them, put them after the maps ``y``.

    Items are the maps of ``out``, (batch, maps of y and z, nodes). The second and the third pass over a map find it in
    the cache.
    """
    number, num_before = z.dtype.type, y.shape[1]
    inverse_large = number(1) / number(large) if large else number(0)
    for which in range(first, last):
        at = which - num_before
        if at >= 0:
            mean[at], variance[at] = _moments(z, at)
            scale = number(1) / np.sqrt(variance[at] + number(eps))
        for image in range(len(out)):
            if at < 0:
                copy(out[image, which], y[image, which])
            elif has_bias:
                _rectify(z[image, at], mean[at], scale, bias[at], out[image, which])
            else:
                _compress(z[image, at], mean[at], scale, inverse_large, out[image, which])


@compile_exact
@no_type_check
def _compress_backward(g, z, mean, scale, half_inverse_large, one):
    """Return the standardised number x, the gradient by it, and the product of the two.

    This does not use 1 / sqrt: LLVM translated that into other instructions, with other bits, in new code than in code
    from the cache.
    """
    x = (z - mean) * scale
    h = abs(x) * half_inverse_large
    inside_root = one + (h + h)
    g_x = g * ((one + h) / (inside_root * np.sqrt(inside_root)))
    return x, g_x, g_x * x


@compile_reassociated
@no_type_check
def _rectified_sums(g, z, mean, scale, bias):
    """Return the sums of the gradient by x, and of that times x, where x is the standardised map."""
    zero, total, total_x = z.dtype.type(0), 0.0, 0.0
    for i in range(len(z)):
        x = (z[i] - mean) * scale
        g_x = g[i] if x + bias > zero else zero
        total += np.float64(g_x)
        total_x += np.float64(g_x * x)
    return total, total_x


@compile_reassociated
@no_type_check
def _compressed_sums(g, z, mean, scale, half_inverse_large):
    """Return the same sums where x is compressed."""
    one, total, total_x = z.dtype.type(1), 0.0, 0.0
    for i in range(len(z)):
        _, g_x, product = _compress_backward(g[i], z[i], mean, scale, half_inverse_large, one)
        total += np.float64(g_x)
        total_x += np.float64(product)
    return total, total_x


@compile_exact
@no_type_check
def _rectified_backward(g, z, mean, scale, bias, mean_g, mean_g_x, out):
    """Compute the gradient by z from the means of those sums."""
    zero = z.dtype.type(0)
    for i in range(len(out)):
        x = (z[i] - mean) * scale
        g_x = g[i] if x + bias > zero else zero
        out[i] = scale * (g_x - mean_g - x * mean_g_x)


@compile_exact
@no_type_check
def _compressed_backward(g, z, mean, scale, half_inverse_large, mean_g, mean_g_x, out):
    one = z.dtype.type(1)
    for i in range(len(out)):
        x, g_x, _ = _compress_backward(g[i], z[i], mean, scale, half_inverse_large, one)
        out[i] = scale * (g_x - mean_g - x * mean_g_x)


@kernel
@no_type_check
def standardise_backward(g, rows_per_image, z, mean, variance, bias, has_bias, eps, large, first, last, g_z, g_bias):
    """Compute the gradients by ``z`` and ``bias``.

    A row of ``g`` is a map; the same map of the next image is ``rows_per_image`` rows further.
    """
    number, count = z.dtype.type, z.shape[0] * z.shape[2]
    half_inverse_large = number(0.5) / number(large) if large else number(0)
    for which in range(first, last):
        centre, scale = mean[which], number(1) / np.sqrt(variance[which] + number(eps))
        total, total_x = 0.0, 0.0
        for image in range(len(z)):
            row = g[image * rows_per_image + which]
            if has_bias:
                part, part_x = _rectified_sums(row, z[image, which], centre, scale, bias[which])
            else:
                part, part_x = _compressed_sums(row, z[image, which], centre, scale, half_inverse_large)
            total += part
            total_x += part_x
        g_bias[which] = total
        mean_g, mean_g_x = number(total / count), number(total_x / count)
        for image in range(len(z)):
            row, out = g[image * rows_per_image + which], g_z[image, which]
            if has_bias:
                _rectified_backward(row, z[image, which], centre, scale, bias[which], mean_g, mean_g_x, out)
            else:
                _compressed_backward(row, z[image, which], centre, scale, half_inverse_large, mean_g, mean_g_x, out)
