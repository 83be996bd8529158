"""CPU kernels that normalise features with orientations, apply ReLU and add a border of pixels.

Images are stored pixel by pixel, and the maps of a pixel are ordered (orientation, feature). A row of an image is
therefore periodic in the features: a factor per feature becomes a row of numbers, and every loop runs over whole rows.
"""

from typing import no_type_check

import numpy as np

from tigranet.ops.cpu.borders import add_columns, fold_row, source_position
from tigranet.ops.cpu.compile import compile_exact, kernel

ROWS_PER_BLOCK = 16
"""Rows that are added up in the precision of the maps, before their sums are added up in float64."""


@compile_exact
@no_type_check
def _add_moments(row, shift, total, squares):
    for i in range(len(row)):
        d = row[i] - shift[i]
        total[i] += d
        squares[i] += d * d


@compile_exact
@no_type_check
def _sum_by_feature(numbers, features, out):
    out[:] = 0
    for start in range(0, len(numbers), features):
        for c in range(features):
            out[c] += numbers[start + c]


@kernel
@no_type_check
def moments(y, shift, features, first, last, sums):
    """Compute the sums of y - shift and of its square for the blocks ``first`` to ``last``.

    ``y`` is (rows, width * maps), ``sums`` (blocks, 2, features).
    """
    total, squares = np.empty(y.shape[1], y.dtype), np.empty(y.shape[1], y.dtype)
    for block in range(first, last):
        total[:] = 0
        squares[:] = 0
        for row in range(block * ROWS_PER_BLOCK, min((block + 1) * ROWS_PER_BLOCK, len(y))):
            _add_moments(y[row], shift, total, squares)
        _sum_by_feature(total, features, sums[block, 0])
        _sum_by_feature(squares, features, sums[block, 1])


@compile_exact
@no_type_check
def _rectify(row, gain, offset, out):
    zero = out.dtype.type(0)
    for i in range(len(out)):
        x = row[i] * gain[i] + offset[i]
        out[i] = zero if x < zero else x  # a NaN stays a NaN


@kernel
@no_type_check
def rectify(y, gain, offset, height, maps, border, wrap_rows, wrap_columns, first, last, out):
    """Compute ReLU(gain * y + offset) for the rows ``first`` to ``last`` of all padded images.

    ``y`` is (images * height, width * maps), ``out`` (images * padded height, padded width * maps).
    """
    length, padded_height = y.shape[1], height + 2 * border
    width = length // maps
    for item in range(first, last):
        image, position = item // padded_height, item % padded_height
        row = image * height + source_position(position, height, border, wrap_rows)
        _rectify(y[row], gain, offset, out[item, border * maps : border * maps + length])
        add_columns(out[item], width, maps, border, wrap_columns)


@compile_exact
@no_type_check
def _add_gradients(g, row, gain, offset, mean, total, products):
    zero = g.dtype.type(0)
    for i in range(len(row)):
        by_x = zero if row[i] * gain[i] + offset[i] <= zero else g[i]
        total[i] += by_x
        products[i] += by_x * (row[i] - mean[i])


@kernel
@no_type_check
def gradient_sums(
    g, y, gain, offset, mean, height, maps, border, wrap_rows, wrap_columns, features, first, last, sums
):  # fmt: skip
    """Compute the sums of the gradient before ReLU, and of that times y - mean, for the blocks ``first`` to ``last``.

    ``g`` is (images, padded height, padded width * maps), ``y`` (images * height, width * maps), ``sums`` (blocks, 2,
    features).
    """
    length = y.shape[1]
    width = length // maps
    folded = np.empty(length, y.dtype)
    total, products = np.empty(length, y.dtype), np.empty(length, y.dtype)
    for block in range(first, last):
        total[:] = 0
        products[:] = 0
        for row in range(block * ROWS_PER_BLOCK, min((block + 1) * ROWS_PER_BLOCK, len(y))):
            fold_row(g[row // height], row % height, height, width, maps, border, wrap_rows, wrap_columns, folded)
            _add_gradients(folded, y[row], gain, offset, mean, total, products)
        _sum_by_feature(total, features, sums[block, 0])
        _sum_by_feature(products, features, sums[block, 1])


@compile_exact
@no_type_check
def _gradient(g, row, gain, offset, mean, constant, slope, out):
    zero = g.dtype.type(0)
    for i in range(len(row)):
        by_x = zero if row[i] * gain[i] + offset[i] <= zero else g[i]
        out[i] = gain[i] * by_x - (constant[i] + (row[i] - mean[i]) * slope[i])


@kernel
@no_type_check
def gradient(
    g, y, gain, offset, mean, constant, slope, height, maps, border, wrap_rows, wrap_columns, first, last, out
):  # fmt: skip
    """Compute gain * h - constant - slope * (y - mean) for the rows ``first`` to ``last``: the gradient by y.

    h is the gradient before ReLU. The shapes are those of :func:`gradient_sums`; ``out`` has the shape of ``y``.
    """
    length = y.shape[1]
    width = length // maps
    folded = np.empty(length, y.dtype)
    for row in range(first, last):
        fold_row(g[row // height], row % height, height, width, maps, border, wrap_rows, wrap_columns, folded)
        _gradient(folded, y[row], gain, offset, mean, constant, slope, out[row])
