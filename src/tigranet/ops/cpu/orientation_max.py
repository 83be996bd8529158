"""CPU kernels of the largest value of all orientations, for maps that are stored pixel by pixel."""

from typing import no_type_check

import numpy as np

from tigranet.ops.cpu.compile import compile_exact, kernel


@compile_exact
@no_type_check
def _keep_larger(y, out):
    for o in range(len(out)):
        out[o] = out[o] if out[o] >= y[o] or out[o] != out[o] else y[o]  # a NaN stays


@compile_exact
@no_type_check
def _largest_of_row(row, features, out):
    out[:] = row[:features]
    for start in range(features, len(row), features):
        _keep_larger(row[start : start + features], out)


@kernel
@no_type_check
def largest(y, orientations, first, last, out):
    """Compute the largest values at the pixels ``first`` to ``last`` of all images.

    ``y`` is (images * nodes, orientations * features) and ``out`` (images, features, nodes).
    """
    features, nodes = out.shape[1:]
    row = np.empty(features, y.dtype)
    for pixel in range(first, last):
        _largest_of_row(y[pixel], features, row)
        image, node = pixel // nodes, pixel % nodes
        for o in range(features):
            out[image, o, node] = row[o]


@compile_exact
@no_type_check
def _count_equal(y, top, number):
    zero, one = top.dtype.type(0), top.dtype.type(1)
    for o in range(len(top)):
        number[o] += one if y[o] == top[o] else zero


@compile_exact
@no_type_check
def _where_equal(y, top, g, out):
    zero, one = top.dtype.type(0), top.dtype.type(1)
    for o in range(len(top)):
        out[o] = g[o] * (one if y[o] == top[o] else zero)


@kernel
@no_type_check
def gradient(g, y, orientations, first, last, out):
    """Compute the gradient at the pixels ``first`` to ``last``, in equal shares for equal largest values.

    ``g`` is (images, features, nodes); ``y`` and ``out`` are (images * nodes, orientations * features).
    """
    features, nodes = g.shape[1:]
    top, number, shares = (np.empty(features, y.dtype), np.empty(features, y.dtype), np.empty(features, y.dtype))
    for pixel in range(first, last):
        image, node = pixel // nodes, pixel % nodes
        for o in range(features):
            shares[o] = g[image, o, node]
        _largest_of_row(y[pixel], features, top)
        number[:] = 0
        for start in range(0, y.shape[1], features):
            _count_equal(y[pixel, start : start + features], top, number)
        for o in range(features):
            shares[o] /= number[o]
        for start in range(0, y.shape[1], features):
            _where_equal(y[pixel, start : start + features], top, shares, out[pixel, start : start + features])
