"""CPU kernel of matrix products of many small groups of rows, in which each row has the same bits wherever it is.

A row of the result is computed by additions in the order of the inner index, whatever the other rows are. Libraries
for matrix products choose the order by the place of a row, so that the results of equal images would differ in their
last bits.
"""

from typing import no_type_check

from tigranet.ops.cpu.arrays import VECTOR_BYTES
from tigranet.ops.cpu.compile import compile_exact, kernel
from tigranet.ops.cpu.vectors import broadcast, load, multiply, multiply_add, store


@kernel
@no_type_check
def multiply_groups(x, matrices, size, inner, columns, first, last, out):
    """Multiply the rows of the groups ``first`` to ``last`` by the matrix of their group.

    All arrays are flat: ``x`` is (groups, size, inner), ``matrices`` (groups, inner, columns) and ``out``
    (groups, size, columns). A row of ``out`` has at least as many numbers as a vector. Six rows times one vector are
    computed at a time; the last ones of a group may include some that are computed already.
    """
    lanes = VECTOR_BYTES // x.itemsize
    for group in range(first, last):
        for r in range(0, size, 6 if size >= 6 else 1):
            row = group * size + (min(r, size - 6) if size >= 6 else r)
            for c in range(0, columns, lanes):
                column = min(c, columns - lanes)
                matrix = group * inner * columns + column
                if size >= 6:
                    _six_rows(x, row * inner, inner, matrices, matrix, columns, out, row * columns + column)
                else:
                    _one_row(x, row * inner, inner, matrices, matrix, columns, out, row * columns + column)


@compile_exact
@no_type_check
def _six_rows(x, row, inner, matrices, matrix, columns, out, place):
    a = load(matrices, matrix)
    s_1, s_2 = multiply(broadcast(x, row), a), multiply(broadcast(x, row + inner), a)
    s_3, s_4 = multiply(broadcast(x, row + 2 * inner), a), multiply(broadcast(x, row + 3 * inner), a)
    s_5, s_6 = multiply(broadcast(x, row + 4 * inner), a), multiply(broadcast(x, row + 5 * inner), a)
    for i in range(1, inner):
        a, at = load(matrices, matrix + i * columns), row + i
        s_1 = multiply_add(broadcast(x, at), a, s_1)
        s_2 = multiply_add(broadcast(x, at + inner), a, s_2)
        s_3 = multiply_add(broadcast(x, at + 2 * inner), a, s_3)
        s_4 = multiply_add(broadcast(x, at + 3 * inner), a, s_4)
        s_5 = multiply_add(broadcast(x, at + 4 * inner), a, s_5)
        s_6 = multiply_add(broadcast(x, at + 5 * inner), a, s_6)
    store(out, place, s_1)
    store(out, place + columns, s_2)
    store(out, place + 2 * columns, s_3)
    store(out, place + 3 * columns, s_4)
    store(out, place + 4 * columns, s_5)
    store(out, place + 5 * columns, s_6)


@compile_exact
@no_type_check
def _one_row(x, row, inner, matrices, matrix, columns, out, place):
    total = multiply(broadcast(x, row), load(matrices, matrix))
    for i in range(1, inner):
        total = multiply_add(broadcast(x, row + i), load(matrices, matrix + i * columns), total)
    store(out, place, total)
