r"""The real Fourier transform along one axis, for many signals at once.

The basis of an axis of n pixels is orthonormal: the cosines :math:`c_k \cos(2 \pi j k / n)`, k = 0 .. n // 2, and the
sines :math:`c_k \sin(2 \pi j k / n)`, k = 1 .. (n - 1) // 2. Most of the multiplications can be saved by symmetry.
Pixel j and its mirror image n - j have the same cosines, and sines of opposite sign. So we *fold* a signal into the
sums :math:`e_j = x_j + x_{n-j}`, which the cosines read, and the differences :math:`o_j = x_j - x_{n-j}`, which the
sines read. With n = 2h, j and h - j are related in the same way, with a sign :math:`(-1)^k`: sums and differences of
:math:`e_j` and :math:`e_{h-j}`, and of :math:`o_j` and :math:`o_{h-j}`, give the even and the odd frequencies.
What is left are small matrices, two of about n / 2 rows for odd n, and four of about n / 4 rows for even n.

The frequencies of an axis have the order of these matrices, see :func:`tigranet.ops.torus_frequencies.axis`. The
inverse is the transpose: the transposed matrices, and then sums and differences in reverse order.

A *piece* is the values of some signals at one pixel, side by side: two vectors. Three rows of a matrix times two
vectors are six sums, enough for a CPU that starts an addition before the last one has ended, and few enough for its
registers.
"""

from typing import no_type_check

from tigranet.ops.cpu.arrays import PIECE_BYTES, VECTOR_BYTES
from tigranet.ops.cpu.compile import compile_exact
from tigranet.ops.cpu.vectors import add, broadcast, load, multiply, multiply_add, store, subtract


@compile_exact
@no_type_check
def fold(x, at, step, n, folded):
    """Fold the n pieces of ``x`` at the offsets ``at``, ``at + step`` and so on into ``folded``."""
    piece, h = PIECE_BYTES // x.itemsize, n // 2
    cosines = 0 * piece  # numba would compile the functions below again for a literal 0
    if n % 2:
        copy_piece(x, at, folded, cosines)
        for j in range(1, h + 1):
            _two(x, at + j * step, at + (n - j) * step, folded, j * piece, (h + j) * piece)
        return
    odd, sines = (h // 2 + 1) * piece, (h + 1) * piece
    even_sines = sines + (h // 2) * piece
    _two(x, at, at + h * step, folded, cosines, odd)
    for j in range(1, (h + 1) // 2):
        _four(
            x, at + j * step, at + (n - j) * step, at + (h - j) * step, at + (h + j) * step,
            folded, j * piece, odd + j * piece, sines + (j - 1) * piece, even_sines + (j - 1) * piece,
        )  # fmt: skip
    if h % 2 == 0:
        j = h // 2
        _two(x, at + j * step, at + (n - j) * step, folded, j * piece, sines + (j - 1) * piece)


@compile_exact
@no_type_check
def unfold(folded, n, x, at, step):
    """Compute the transpose of :func:`fold`."""
    piece, h = PIECE_BYTES // x.itemsize, n // 2
    cosines = 0 * piece
    if n % 2:
        copy_piece(folded, cosines, x, at)
        for j in range(1, h + 1):
            _two(folded, j * piece, (h + j) * piece, x, at + j * step, at + (n - j) * step)
        return
    odd, sines = (h // 2 + 1) * piece, (h + 1) * piece
    even_sines = sines + (h // 2) * piece
    _two(folded, cosines, odd, x, at, at + h * step)
    for j in range(1, (h + 1) // 2):
        _four_back(
            folded, j * piece, odd + j * piece, sines + (j - 1) * piece, even_sines + (j - 1) * piece,
            x, at + j * step, at + (n - j) * step, at + (h - j) * step, at + (h + j) * step,
        )  # fmt: skip
    if h % 2 == 0:
        j = h // 2
        _two(folded, j * piece, sines + (j - 1) * piece, x, at + j * step, at + (n - j) * step)


@compile_exact
@no_type_check
def multiply_blocks(blocks, sizes, x, at, out, places):
    """Multiply the pieces of ``x`` from ``at`` on by matrices along the diagonal, and store piece k at ``places[k]``.

    ``blocks`` holds the rows of all matrices one after the other, and ``sizes`` their numbers of rows. Three rows are
    computed at a time; the last three of a matrix may include some that are computed already.
    """
    first, block = 0, 0
    for size in sizes:
        if size < 3:
            for k in range(size):
                _one_row(blocks, block + k * size, size, x, at, out, places[first + k])
        else:
            for three in range(0, size, 3):
                k = min(three, size - 3)
                _three_rows(
                    blocks, block + k * size, size, x, at,
                    out, places[first + k], places[first + k + 1], places[first + k + 2],
                )  # fmt: skip
        first, block, at = first + size, block + size * size, at + size * (PIECE_BYTES // x.itemsize)


@compile_exact
@no_type_check
def _three_rows(blocks, row, size, x, at, out, i, j, k):
    """Multiply ``size`` pieces of ``x`` by three rows of a matrix."""
    lanes, piece = VECTOR_BYTES // x.itemsize, PIECE_BYTES // x.itemsize
    u, v = load(x, at), load(x, at + lanes)
    a, b, c = broadcast(blocks, row), broadcast(blocks, row + size), broadcast(blocks, row + 2 * size)
    a_u, a_v, b_u, b_v = multiply(a, u), multiply(a, v), multiply(b, u), multiply(b, v)
    c_u, c_v = multiply(c, u), multiply(c, v)
    for t in range(1, size):
        u, v = load(x, at + t * piece), load(x, at + t * piece + lanes)
        column = row + t
        a, b, c = broadcast(blocks, column), broadcast(blocks, column + size), broadcast(blocks, column + 2 * size)
        a_u, a_v = multiply_add(a, u, a_u), multiply_add(a, v, a_v)
        b_u, b_v = multiply_add(b, u, b_u), multiply_add(b, v, b_v)
        c_u, c_v = multiply_add(c, u, c_u), multiply_add(c, v, c_v)
    store(out, i, a_u)
    store(out, i + lanes, a_v)
    store(out, j, b_u)
    store(out, j + lanes, b_v)
    store(out, k, c_u)
    store(out, k + lanes, c_v)


@compile_exact
@no_type_check
def _one_row(blocks, row, size, x, at, out, place):
    """Multiply ``size`` pieces of ``x`` by one row of a matrix."""
    lanes, piece = VECTOR_BYTES // x.itemsize, PIECE_BYTES // x.itemsize
    a = broadcast(blocks, row)
    a_u, a_v = multiply(a, load(x, at)), multiply(a, load(x, at + lanes))
    for t in range(1, size):
        a = broadcast(blocks, row + t)
        a_u = multiply_add(a, load(x, at + t * piece), a_u)
        a_v = multiply_add(a, load(x, at + t * piece + lanes), a_v)
    store(out, place, a_u)
    store(out, place + lanes, a_v)


@compile_exact
@no_type_check
def copy_piece(x, at, out, place):
    """Copy one piece."""
    lanes = VECTOR_BYTES // x.itemsize
    store(out, place, load(x, at))
    store(out, place + lanes, load(x, at + lanes))


@compile_exact
@no_type_check
def _two(x, a, b, out, plus, minus):
    """Store the sum and the difference of two pieces."""
    lanes = VECTOR_BYTES // x.itemsize
    for i in range(0, PIECE_BYTES // x.itemsize, lanes):
        u, v = load(x, a + i), load(x, b + i)
        store(out, plus + i, add(u, v))
        store(out, minus + i, subtract(u, v))


@compile_exact
@no_type_check
def _four(x, a, b, c, d, out, even, odd, sines, even_sines):
    """Fold pixels j, n - j, h - j and h + j."""
    lanes = VECTOR_BYTES // x.itemsize
    for i in range(0, PIECE_BYTES // x.itemsize, lanes):
        r, s, t, u = load(x, a + i), load(x, b + i), load(x, c + i), load(x, d + i)
        e_1, o_1, e_2, o_2 = add(r, s), subtract(r, s), add(t, u), subtract(t, u)
        store(out, even + i, add(e_1, e_2))
        store(out, odd + i, subtract(e_1, e_2))
        store(out, sines + i, add(o_1, o_2))
        store(out, even_sines + i, subtract(o_1, o_2))


@compile_exact
@no_type_check
def _four_back(x, even, odd, sines, even_sines, out, a, b, c, d):
    """Compute the transpose of :func:`_four`."""
    lanes = VECTOR_BYTES // x.itemsize
    for i in range(0, PIECE_BYTES // x.itemsize, lanes):
        r, s, t, u = load(x, even + i), load(x, odd + i), load(x, sines + i), load(x, even_sines + i)
        e_1, e_2, o_1, o_2 = add(r, s), subtract(r, s), add(t, u), subtract(t, u)
        store(out, a + i, add(e_1, o_1))
        store(out, b + i, subtract(e_1, o_1))
        store(out, c + i, add(e_2, o_2))
        store(out, d + i, subtract(e_2, o_2))
