"""CPU kernels of products of one matrix with the maps of a batch, and of the gradient of that matrix.

The maps of an image are the rows of a matrix with one column per node. A panel of some columns is copied, so that it
stays in the first cache while all rows of the product are computed from it: rows of a map of 64 x 64 pixels are a
power of two apart, and a cache has few places for such addresses.
"""

from typing import no_type_check

import numpy as np

from tigranet.ops.cpu.arrays import VECTOR_BYTES
from tigranet.ops.cpu.compile import compile_exact, kernel
from tigranet.ops.cpu.product_tiles import inner_product_tile, product_tile
from tigranet.ops.cpu.vectors import load, store

ROWS, VECTORS = 8, 3
"""Rows and vectors of columns of a product that are computed at a time."""
GRADIENT_ROWS, GRADIENT_COLUMNS = 8, 3
"""Rows and columns of the gradient of a matrix that are computed at a time."""
PIECE = 1024
"""Number of nodes that are summed in the type of the maps before the total is carried on in float64: so few that the
rows of a tile stay in the first cache until all its columns are computed."""

_tile = product_tile(ROWS, VECTORS)
_one_vector = product_tile(ROWS, 1)
_inner_products = inner_product_tile(GRADIENT_ROWS, GRADIENT_COLUMNS)


@no_type_check
def panels_per_image(nodes, itemsize):
    """Return in how many panels the columns of an image are divided. What is left belongs to the last one."""
    return max(1, nodes * itemsize // (VECTORS * VECTOR_BYTES))


@kernel
@no_type_check
def mix(matrix, y, rows, inner, nodes, first, last, out):
    """Compute the panels ``first`` to ``last`` of the products of a matrix with the maps of all images.

    All arrays are flat: ``matrix`` is (rows, inner), ``y`` (batch, inner, nodes) and ``out`` (batch, rows, nodes).
    There are at least :data:`ROWS` rows, and a map has at least as many nodes as a vector has numbers. Tiles at the end
    may include rows or columns that are computed already.
    """
    lanes = VECTOR_BYTES // y.itemsize
    width = VECTORS * lanes
    panels = max(1, nodes // width)
    panel = np.empty(inner * width, y.dtype)
    for item in range(first, last):
        image, start = item // panels, item % panels * width
        maps, results = image * inner * nodes, image * rows * nodes
        if start + width <= nodes:
            _copy_panel(y, maps + start, nodes, inner, lanes, panel)
            for r in range(0, rows, ROWS):
                row = min(r, rows - ROWS)
                place = results + row * nodes + start
                _tile(matrix, row * inner, inner, panel, 0, width, inner, out, place, nodes)
            start += width
        if (item + 1) % panels == 0:
            for c in range(start, nodes, lanes):
                column = min(c, nodes - lanes)
                for r in range(0, rows, ROWS):
                    row = min(r, rows - ROWS)
                    place = results + row * nodes + column
                    _one_vector(matrix, row * inner, inner, y, maps + column, nodes, inner, out, place, nodes)


@compile_exact
@no_type_check
def _copy_panel(y, at, nodes, inner, lanes, panel):
    width = VECTORS * lanes
    for i in range(inner):
        for v in range(0, width, lanes):
            store(panel, i * width + v, load(y, at + i * nodes + v))


@kernel
@no_type_check
def matrix_gradient(g, y, rows, inner, nodes, batch, first, last, out):
    """Compute the sum over the batch of g y^T, for blocks of :data:`GRADIENT_ROWS` rows, from ``first`` to ``last``.

    All arrays are flat: ``g`` is (batch, rows, nodes), ``y`` (batch, inner, nodes) and ``out`` (rows, inner). There are
    at least :data:`GRADIENT_ROWS` rows and :data:`GRADIENT_COLUMNS` inner maps, and a map has at least as many nodes as
    a vector has numbers. The sums of about :data:`PIECE` nodes are added in float64.
    """
    images, g_step, y_step = max(1, PIECE // nodes), rows * nodes, inner * nodes
    sums, totals = np.empty(GRADIENT_ROWS * inner, g.dtype), np.empty(GRADIENT_ROWS * inner, np.float64)
    for block in range(first, last):
        row = min(block * GRADIENT_ROWS, rows - GRADIENT_ROWS)
        totals[:] = 0
        for image in range(0, batch, images):
            count = min(images, batch - image)
            g_at, y_at = image * g_step + row * nodes, image * y_step
            for c in range(0, inner, GRADIENT_COLUMNS):
                column = min(c, inner - GRADIENT_COLUMNS)
                y_place = y_at + column * nodes
                _inner_products(g, g_at, g_step, y, y_place, y_step, nodes, count, sums, column, inner)
            for i in range(len(sums)):
                totals[i] += sums[i]
        for i in range((block * GRADIENT_ROWS - row) * inner, len(totals)):
            out[row * inner + i] = totals[i]
