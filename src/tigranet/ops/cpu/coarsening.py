"""CPU kernels that halve the height and width of images. All maps of a pixel are next to each other."""

from typing import no_type_check

import numpy as np

from tigranet.ops.cpu.compile import compile_inlined, kernel


@compile_inlined
@no_type_check
def _smooth_number(a, b, c, d, outer, inner):
    return outer * (a + d) + inner * (b + c)


@compile_inlined
@no_type_check
def _smooth(a, b, c, d, outer, inner, out):
    """Compute outer * (a + d) + inner * (b + c), which has the same bits when the four are reversed."""
    for i in range(len(out)):
        out[i] = _smooth_number(a[i], b[i], c[i], d[i], outer, inner)


@kernel
@no_type_check
def coarsen(y, rows, columns, row_weights, column_weights, maps, first, last, out):
    """Smooth and subsample, for the coarse rows ``first`` to ``last`` of all images.

    ``y`` is (images, height, width * maps), ``out`` (images * coarse height, coarse width * maps). ``rows`` is (coarse
    height, 4): the fine rows of a coarse row. The weights are those of the outer two and of the inner two.
    """
    smooth = np.empty(y.shape[2], y.dtype)
    for item in range(first, last):
        image, taps = y[item // len(rows)], rows[item % len(rows)]
        _smooth(
            image[taps[0]], image[taps[1]], image[taps[2]], image[taps[3]], row_weights[0], row_weights[1], smooth
        )  # fmt: skip
        if maps == 1:
            for j in range(len(columns)):
                a, b, c, d = columns[j]
                out[item, j] = _smooth_number(
                    smooth[a], smooth[b], smooth[c], smooth[d], column_weights[0], column_weights[1]
                )
            continue
        for j in range(len(columns)):
            a, b, c, d = columns[j, 0] * maps, columns[j, 1] * maps, columns[j, 2] * maps, columns[j, 3] * maps
            _smooth(
                smooth[a : a + maps], smooth[b : b + maps], smooth[c : c + maps], smooth[d : d + maps],
                column_weights[0], column_weights[1], out[item, j * maps : (j + 1) * maps],
            )  # fmt: skip


@compile_inlined
@no_type_check
def _combine(a, b, weight_a, weight_b, out):
    for i in range(len(out)):
        out[i] = weight_a * a[i] + weight_b * b[i]


@kernel
@no_type_check
def coarsen_backward(g, rows, columns, row_weights, column_weights, maps, first, last, out):
    """Apply the adjoint of :func:`coarsen`, for the fine rows ``first`` to ``last`` of all images.

    ``g`` is (images, coarse height, coarse width * maps), ``out`` (images * height, width * maps). ``rows`` and
    ``row_weights`` are (height, 2): the coarse rows that a fine row is part of, and its weights in them.
    """
    spread = np.empty(g.shape[2], g.dtype)
    for item in range(first, last):
        row = item % len(rows)
        image = g[item // len(rows)]
        _combine(image[rows[row, 0]], image[rows[row, 1]], row_weights[row, 0], row_weights[row, 1], spread)
        if maps == 1:
            for j in range(len(columns)):
                out[item, j] = (
                    column_weights[j, 0] * spread[columns[j, 0]] + column_weights[j, 1] * spread[columns[j, 1]]
                )
            continue
        for j in range(len(columns)):
            a, b = columns[j, 0] * maps, columns[j, 1] * maps
            _combine(
                spread[a : a + maps], spread[b : b + maps], column_weights[j, 0], column_weights[j, 1],
                out[item, j * maps : (j + 1) * maps],
            )  # fmt: skip
