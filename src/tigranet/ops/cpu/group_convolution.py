"""CPU kernels of group convolutions by frequencies, see :mod:`tigranet.ops.orientation_frequencies`.

Images are stored pixel by pixel. A kernel takes a strip of lines of a padded image and turns it into planes: one per
component of the features over the orientations, and per feature. A plane is one long row: the pixel to the right is the
next number, the pixel below is ``width`` numbers on. So a filter is a sum of shifted copies of a row, the same at every
pixel; numbers at the seams between two lines are computed, too, and ignored.

The planes of a strip stay in the second cache. The following steps compute one panel of pixels at a time, from the
terms (:mod:`tigranet.ops.cpu.wave_terms`) to the output; the products of the terms with the coefficients of the layer
(:func:`tigranet.ops.orientation_frequencies.coefficients`), one for each frequency, take most of the time.
"""

from typing import Any, no_type_check

import numba
import numpy as np
from llvmlite import binding

from tigranet.ops.cpu.arrays import VECTOR_BYTES
from tigranet.ops.cpu.compile import compile_exact, compile_inlined, kernel
from tigranet.ops.cpu.product_tiles import product_tile
from tigranet.ops.cpu.vectors import add, load, store, transpose
from tigranet.ops.cpu.wave_terms import add_gradient_at_pixels, terms_at_pixels
from tigranet.ops.orientation_frequencies import ORIENTATIONS, SIZES

VECTORS = 3
"""Number of vectors of pixels of a panel."""
_config: Any = numba.config
_features = binding.get_host_cpu_features().flatten() if _config.CPU_FEATURES is None else _config.CPU_FEATURES
HAS_LONG_REGISTERS = "+avx512f" in _features.split(",")
"""Whether a register holds a vector, so that 32 registers hold the sums of large tiles."""
ROWS, TILE_VECTORS = (8, 3) if HAS_LONG_REGISTERS else (4, 1)
"""Rows and vectors of a product that are computed at a time."""
STRIP_BYTES = 256 * 1024
"""Approximate size of the planes of a strip."""
MIN_LINES = 8
"""Least number of lines of a strip, so that the lines around a strip take little time, except for lower images."""

_rows_tile = product_tile(ROWS, TILE_VECTORS)
_row_tile = product_tile(1, TILE_VECTORS)
_adding_tile = product_tile(ROWS, 1, adds=True)
_two_adding_tile = product_tile(ROWS, 2, adds=True)

_terms_1, _terms_3, _terms_5 = (terms_at_pixels(size) for size in SIZES)
_add_gradient_1, _add_gradient_3, _add_gradient_5 = (add_gradient_at_pixels(size) for size in SIZES)


@no_type_check
def strip_lines(height, width, border, features, itemsize):
    """Return the number of output lines of a strip: of several strips at least as many as two of them share."""
    line_bytes = ORIENTATIONS * features * (width + 2 * border) * itemsize
    return min(height, max(MIN_LINES, STRIP_BYTES // line_bytes - 2 * border))


@compile_exact
@no_type_check
def _multiply(matrix, at, rows, inner, b, b_at, b_stride, panel, lanes, out, out_at, out_stride):
    """Multiply a matrix (rows, inner) by a panel of columns."""
    for v in range(0, panel, TILE_VECTORS * lanes):
        if rows >= ROWS:
            for r in range(0, rows, ROWS):
                row = min(r, rows - ROWS)
                place = out_at + row * out_stride + v
                _rows_tile(matrix, at + row * inner, inner, b, b_at + v, b_stride, inner, out, place, out_stride)
        else:
            for row in range(rows):
                place = out_at + row * out_stride + v
                _row_tile(matrix, at + row * inner, inner, b, b_at + v, b_stride, inner, out, place, out_stride)


@compile_exact
@no_type_check
def _transpose_panel(x, at, stride, rows, columns, lanes, out, out_at, out_stride):
    """Transpose a matrix (rows, columns), both multiples of the number of lanes."""
    for r in range(0, rows, lanes):
        for c in range(0, columns, lanes):
            transpose(x, at + r * stride + c, stride, out, out_at + c * out_stride + r, out_stride)


@compile_exact
@no_type_check
def _to_planes(x, at, pixels, features, panel, lanes, matrix, scratch, planes, stride):
    """Transform consecutive pixels over the orientations, and store the components as planes.

    ``scratch`` has room for two panels of all maps. The last panel is filled up with zeros.
    """
    maps = ORIENTATIONS * features
    rest = maps * panel
    for start in range(0, pixels, panel):
        count = min(panel, pixels - start) * maps
        if count == rest:
            _transpose_panel(x, at + start * maps, maps, panel, maps, lanes, scratch, 0, panel)
        else:
            scratch[rest : rest + count] = x[at + start * maps : at + start * maps + count]
            scratch[rest + count : 2 * rest] = 0
            _transpose_panel(scratch, rest, maps, panel, maps, lanes, scratch, 0, panel)
        for a in range(features):
            _multiply(
                matrix, 0, ORIENTATIONS, ORIENTATIONS, scratch, a * panel, features * panel, panel, lanes, planes,
                a * stride + start, features * stride,
            )  # fmt: skip


@compile_inlined
@no_type_check
def _compute_terms(size, planes, start, features, stride, width, panel, lanes, out):
    """Compute the terms of the panel of pixels around ``start``, (frequency, feature, term, panel)."""
    component = features * stride
    for a in range(features):
        for v in range(0, panel, lanes):
            at = start + a * stride + v
            if size == 1:
                _terms_1(planes, at, component, width, out, v, a, features, panel)
            elif size == 3:
                _terms_3(planes, at, component, width, out, v, a, features, panel)
            else:
                _terms_5(planes, at, component, width, out, v, a, features, panel)


@kernel
@no_type_check
def forward(
    x, height, width, size, features, out_features, lines, coefficients, counts, transforms, first, last, out
):  # fmt: skip
    """Convolve the strips ``first`` to ``last`` of all padded images.

    ``x`` is (images, padded height, padded width, 8, features), flat, and ``out`` (images, height, width, 8,
    out_features). ``counts`` are the numbers of terms of each frequency, ``coefficients`` the matrices (outputs,
    features, terms) of all frequencies, and ``transforms`` those to and from the components.
    """
    lanes = VECTOR_BYTES // x.itemsize
    panel, border = VECTORS * lanes, size // 2
    padded_width = width + 2 * border
    strips = -(-height // lines)
    maps, out_maps, total = ORIENTATIONS * features, ORIENTATIONS * out_features, counts.sum()
    stride = _plane_stride(lines, padded_width, border, panel)
    planes = np.zeros(maps * stride, x.dtype)
    terms = np.empty(total * features * panel, x.dtype)
    components = np.empty(out_maps * panel, x.dtype)
    scratch = np.empty(2 * max(maps, out_maps) * panel, x.dtype)
    for item in range(first, last):
        image, line = item // strips, item % strips * lines
        count = min(lines, height - line)
        at = (image * (height + 2 * border) + line) * padded_width * maps
        pixels = (count + 2 * border) * padded_width
        _to_planes(x, at, pixels, features, panel, lanes, transforms[0], scratch, planes, stride)
        for start in range(0, count * padded_width, panel):
            _compute_terms(
                size, planes, start + border * (padded_width + 1), features, stride, padded_width, panel, lanes, terms
            )
            _mix(coefficients, counts, features, out_features, terms, panel, lanes, components)
            for o in range(out_features):
                step = out_features * panel
                _multiply(
                    transforms[1], 0, ORIENTATIONS, ORIENTATIONS, components, o * panel, step, panel, lanes, scratch,
                    o * panel, step,
                )  # fmt: skip
            turned = out_maps * panel
            _transpose_panel(scratch, 0, panel, out_maps, panel, lanes, scratch, turned, out_maps)
            place = (image * height + line) * width * out_maps
            _copy_pixels(scratch, turned, start, count, padded_width, width, panel, out_maps, lanes, out, place)


@compile_exact
@no_type_check
def _plane_stride(lines, padded_width, border, panel):
    """Return the distance between two planes of a strip, with room for the filters at the last panel."""
    panels = -(-(lines + 2 * border) * padded_width // panel)
    return (panels + 1) * panel + 2 * border * (padded_width + 1)


@compile_exact
@no_type_check
def _mix(coefficients, counts, features, out_features, terms, panel, lanes, components):
    """Multiply the terms of each frequency by their coefficients."""
    matrix, term, row = 0, 0, 0
    for m in range(len(counts)):
        inner, rows = counts[m] * features, out_features if m < 2 else 2 * out_features
        _multiply(coefficients, matrix, rows, inner, terms, term, panel, panel, lanes, components, row, panel)
        matrix, term, row = matrix + rows * inner, term + inner * panel, row + rows * panel


@compile_exact
@no_type_check
def _copy_pixels(x, at, start, lines, padded_width, width, panel, maps, lanes, out, out_at):
    """Copy the numbers of the pixels of a panel that are not at a seam between two lines."""
    for p in range(panel):
        line, column = (start + p) // padded_width, (start + p) % padded_width
        if line < lines and column < width:
            place = out_at + (line * width + column) * maps
            for c in range(0, maps, lanes):
                store(out, place + c, load(x, at + p * maps + c))


@kernel
@no_type_check
def backward(
    g, x, height, width, size, features, out_features, lines, coefficients, counts, transforms, needs_x, parity,
    block, first, last, g_coefficients, g_x,
):  # fmt: skip
    """Compute the gradients of the blocks ``first`` to ``last`` of ``block`` strips each.

    ``g`` and ``g_x`` have the shapes of the output and of the input, ``coefficients`` are the transposed matrices
    (features, terms, outputs), and ``g_coefficients`` (blocks, size) holds for each block the gradient by each of them,
    stored as in the shapes of :func:`gradient_shape`.

    Strips that follow each other share the lines between them. So the even strips of all images (``parity`` 0) are
    computed first: they have no line in common, and threads do not disturb each other. The odd ones then add to the
    lines that they share.
    """
    lanes = VECTOR_BYTES // x.itemsize
    panel, border = VECTORS * lanes, size // 2
    padded_width, padded_height = width + 2 * border, height + 2 * border
    images = len(g) // (height * width * ORIENTATIONS * out_features)
    strips = (-(-height // lines) + 1 - parity) // 2
    maps, out_maps, total = ORIENTATIONS * features, ORIENTATIONS * out_features, counts.sum()
    stride = _plane_stride(lines, padded_width, border, panel)
    planes, g_planes = np.zeros(maps * stride, x.dtype), np.zeros(size * maps * stride, x.dtype)
    terms = np.zeros((total * features + ROWS) * panel, x.dtype)
    # a transposed block may include rows of the next frequency, or after the last one
    components = np.zeros((out_maps + lanes) * panel, x.dtype)
    by_pixel = np.empty((2 * out_features + lanes) * panel, x.dtype)
    scratch = np.empty(2 * max(maps, out_maps) * panel, x.dtype)
    for item in range(first * block, min(last * block, images * strips)):
        image, line, sums = item // strips, (2 * (item % strips) + parity) * lines, g_coefficients[item // block]
        count = min(lines, height - line)
        at = (image * padded_height + line) * padded_width * maps
        pixels = (count + 2 * border) * padded_width
        _to_planes(x, at, pixels, features, panel, lanes, transforms[0], scratch, planes, stride)
        g_planes[:] = 0
        for start in range(0, count * padded_width, panel):
            centre = start + border * (padded_width + 1)
            place = (image * height + line) * width * out_maps
            _gradient_components(
                g, place, start, count, padded_width, width, out_features, panel, lanes, transforms[2], scratch,
                components,
            )  # fmt: skip
            _compute_terms(size, planes, centre, features, stride, padded_width, panel, lanes, terms)
            _add_products(terms, components, counts, features, out_features, panel, lanes, by_pixel, sums)
            if needs_x:
                _mix_gradients(coefficients, counts, features, out_features, components, panel, lanes, terms)
                _add_to_planes(size, terms, centre, features, stride, padded_width, panel, lanes, g_planes)
        if needs_x:
            shared = 2 * border * padded_width * parity
            stored_end = pixels - (shared if line + count < height else 0)
            _from_planes(
                size, g_planes, stride, pixels, features, panel, lanes, transforms[3], scratch, shared, stored_end,
                g_x, at,
            )  # fmt: skip


@no_type_check
def gradient_shape(inner, outputs, itemsize):
    """Return the shape in which the gradient by a matrix (inner, outputs) is stored: whole tiles.

    Rows and columns beyond those of the matrix hold numbers without a meaning.
    """
    lanes = VECTOR_BYTES // itemsize
    return -(-inner // ROWS) * ROWS, -(-outputs // lanes) * lanes


@compile_exact
@no_type_check
def _gradient_components(
    g, at, start, lines, padded_width, width, out_features, panel, lanes, matrix, scratch, components
):  # fmt: skip
    """Transform the gradient of a panel of pixels over the orientations. It is zero at the seams between lines."""
    maps = ORIENTATIONS * out_features
    turned = maps * panel
    for p in range(panel):
        line, column = (start + p) // padded_width, (start + p) % padded_width
        if line < lines and column < width:
            place = at + (line * width + column) * maps
            for c in range(0, maps, lanes):
                store(scratch, p * maps + c, load(g, place + c))
        else:
            scratch[p * maps : (p + 1) * maps] = 0
    _transpose_panel(scratch, 0, maps, panel, maps, lanes, scratch, turned, panel)
    step = out_features * panel
    for o in range(out_features):
        _multiply(
            matrix, 0, ORIENTATIONS, ORIENTATIONS, scratch, turned + o * panel, step, panel, lanes, components,
            o * panel, step,
        )  # fmt: skip


@compile_exact
@no_type_check
def _add_products(terms, components, counts, features, out_features, panel, lanes, by_pixel, sums):
    """Add the products of the terms and the gradients of a panel to the gradient by the coefficients."""
    term, row, place = 0, 0, 0
    for m in range(len(counts)):
        inner, outputs = counts[m] * features, out_features if m < 2 else 2 * out_features
        length = -(-outputs // lanes) * lanes
        _transpose_panel(components, row * panel, panel, length, panel, lanes, by_pixel, 0, length)
        for k in range(0, inner, ROWS):
            v = 0
            while v < outputs:
                a_at, out_at = (term + k) * panel, place + k * length + v
                if HAS_LONG_REGISTERS and v + lanes < outputs:
                    _two_adding_tile(terms, a_at, panel, by_pixel, v, length, panel, sums, out_at, length)
                    v += 2 * lanes
                else:
                    _adding_tile(terms, a_at, panel, by_pixel, v, length, panel, sums, out_at, length)
                    v += lanes
        term, row, place = term + inner, row + outputs, place + -(-inner // ROWS) * ROWS * length


@compile_exact
@no_type_check
def _mix_gradients(coefficients, counts, features, out_features, components, panel, lanes, terms):
    """Multiply the gradient of each frequency by the transposed coefficients."""
    matrix, term, row = 0, 0, 0
    for m in range(len(counts)):
        inner, rows = counts[m] * features, out_features if m < 2 else 2 * out_features
        _multiply(coefficients, matrix, inner, rows, components, row, panel, panel, lanes, terms, term, panel)
        matrix, term, row = matrix + rows * inner, term + inner * panel, row + rows * panel


@compile_inlined
@no_type_check
def _add_to_planes(size, terms, start, features, stride, width, panel, lanes, planes):
    """Add the gradient by the terms of a panel to that by the planes around ``start``.

    There is a copy of the planes for each column of a filter.
    """
    component, copy = features * stride, ORIENTATIONS * features * stride
    start += size // 2 * copy
    for a in range(features):
        for v in range(0, panel, lanes):
            at = start + a * stride + v
            if size == 1:
                _add_gradient_1(terms, v, a, features, panel, planes, at, component, width, copy)
            elif size == 3:
                _add_gradient_3(terms, v, a, features, panel, planes, at, component, width, copy)
            else:
                _add_gradient_5(terms, v, a, features, panel, planes, at, component, width, copy)


@compile_exact
@no_type_check
def _from_planes(
    size, planes, stride, pixels, features, panel, lanes, matrix, scratch, shared, stored_end, out, out_at
):
    """Transform planes back to orientations. The pixels from ``shared`` to ``stored_end`` are stored, others added."""
    maps, border = ORIENTATIONS * features, size // 2
    turned, component = maps * panel, features * stride
    sums = np.empty(ORIENTATIONS * panel, planes.dtype)
    for start in range(0, pixels, panel):
        for a in range(features):
            for i in range(ORIENTATIONS):
                at = i * component + a * stride + start
                for v in range(0, panel, lanes):
                    total = load(planes, at + border + v)
                    for c in range(1, size):
                        total = add(total, load(planes, c * maps * stride + at + border - c + v))
                    store(sums, i * panel + v, total)
            _multiply(
                matrix, 0, ORIENTATIONS, ORIENTATIONS, sums, 0, panel, panel, lanes, scratch, a * panel,
                features * panel,
            )  # fmt: skip
        _transpose_panel(scratch, 0, panel, maps, panel, lanes, scratch, turned, maps)
        for p in range(min(panel, pixels - start)):
            place = out_at + (start + p) * maps
            for c in range(0, maps, lanes):
                number = load(scratch, turned + p * maps + c)
                if not shared <= start + p < stored_end:
                    number = add(number, load(out, place + c))
                store(out, place + c, number)
