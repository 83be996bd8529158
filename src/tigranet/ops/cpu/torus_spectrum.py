"""CPU kernels of the Fourier transform of maps on a torus, and of its inverse.

A kernel transposes a few signals, so that their values at one pixel lie side by side, and then transforms the columns
and the rows of all of them at once.
"""

from typing import no_type_check

import numpy as np

from tigranet.ops.cpu.arrays import PIECE_BYTES, VECTOR_BYTES
from tigranet.ops.cpu.compile import compile_exact, kernel
from tigranet.ops.cpu.real_fourier import copy_piece, fold, multiply_blocks, unfold
from tigranet.ops.cpu.vectors import transpose


@kernel
@no_type_check
def to_spectrum(signals, height, width, row_blocks, row_sizes, column_blocks, column_sizes, order, first, last, out):
    """Transform the pieces ``first`` to ``last`` of ``signals``, (count, nodes) as one flat array.

    The coefficient of frequency f of all signals is row ``order[f]`` of ``out``, (nodes, count) as one flat array.
    The last piece ends with the last signal, and may contain signals of the one before.
    """
    piece, nodes = PIECE_BYTES // signals.itemsize, height * width
    count = len(signals) // nodes
    x, folded = np.empty(nodes * piece, signals.dtype), np.empty(max(height, width) * piece, signals.dtype)
    places = np.empty(max(height, width), np.intp)
    start = 0 * piece  # numba would compile functions again for a literal 0
    for item in range(first, last):
        at = min(item * piece, count - piece)
        _transpose_signals(signals, at * nodes, nodes, x)
        for r in range(height):
            fold(x, r * width * piece, piece, width, folded)
            for k in range(width):
                places[k] = (r * width + k) * piece
            multiply_blocks(column_blocks, column_sizes, folded, start, x, places)
        for c in range(width):
            fold(x, c * piece, width * piece, height, folded)
            for k in range(height):
                places[k] = order[k * width + c] * count + at
            multiply_blocks(row_blocks, row_sizes, folded, start, out, places)


@kernel
@no_type_check
def from_spectrum(spectrum, height, width, row_blocks, row_sizes, column_blocks, column_sizes, order, first, last, out):
    """Compute the signals ``out`` of a spectrum: the inverse of :func:`to_spectrum`, with transposed blocks."""
    piece, nodes = PIECE_BYTES // spectrum.itemsize, height * width
    count, longest = len(spectrum) // nodes, max(height, width)
    x, folded = np.empty(nodes * piece, spectrum.dtype), np.empty(longest * piece, spectrum.dtype)
    coefficients, places = np.empty(height * piece, spectrum.dtype), np.empty(longest, np.intp)
    start = 0 * piece
    for k in range(longest):
        places[k] = k * piece
    for item in range(first, last):
        at = min(item * piece, count - piece)
        for c in range(width):
            for k in range(height):
                copy_piece(spectrum, order[k * width + c] * count + at, coefficients, k * piece)
            multiply_blocks(row_blocks, row_sizes, coefficients, start, folded, places)
            unfold(folded, height, x, c * piece, width * piece)
        for r in range(height):
            multiply_blocks(column_blocks, column_sizes, x, r * width * piece, folded, places)
            unfold(folded, width, x, r * width * piece, piece)
        _transpose_pixels(x, out, at * nodes, nodes)


@compile_exact
@no_type_check
def _transpose_signals(signals, at, nodes, x):
    """Store a piece of signals in ``x``, pixel by pixel."""
    lanes, piece = VECTOR_BYTES // signals.itemsize, PIECE_BYTES // signals.itemsize
    for part in range(0, piece, lanes):
        for block in range(0, nodes, lanes):
            node = min(block, nodes - lanes)
            transpose(signals, at + part * nodes + node, nodes, x, node * piece + part, piece)


@compile_exact
@no_type_check
def _transpose_pixels(x, out, at, nodes):
    """Store ``x``, which holds a piece of signals pixel by pixel, signal by signal."""
    lanes, piece = VECTOR_BYTES // x.itemsize, PIECE_BYTES // x.itemsize
    for part in range(0, piece, lanes):
        for block in range(0, nodes, lanes):
            node = min(block, nodes - lanes)
            transpose(x, node * piece + part, piece, out, at + part * nodes + node, nodes)
