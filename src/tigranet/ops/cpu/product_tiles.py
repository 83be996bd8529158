"""Parts of matrix products whose sums stay in the registers of a core: the inner loops of the kernels of products.

The functions of :mod:`tigranet.ops.cpu.vectors` are one instruction each. A tile is a whole loop: it reads a number or
a vector once and uses it in several sums, which are not stored before the loop ends. The 32 registers of AVX-512 are
enough for tiles of 24 sums and the vectors that they are made of.
"""

from typing import Any, no_type_check

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tigranet.ops.cpu.vectors import Vector, broadcast_number, fused_multiply_add, load_vector, pointer, store_vector


def product_tile(rows: int, vectors: int, adds: bool = False) -> Any:
    """Return a function for compiled code that multiplies some rows of a matrix by some vectors of columns.

    ``tile(a, a_at, a_stride, b, b_at, b_stride, inner, out, out_at, out_stride)`` computes
    out[r, c] = sum over i of a[r, i] * b[i, c]. All arrays are flat; ``a_at`` is the place of the first number, and
    ``a_stride`` the distance between two rows, and so on. The additions have the order of i.

    Args:
        rows: The number of rows r.
        vectors: The number of vectors of columns c.
        adds: Whether the sums are added to the numbers of ``out``, one product after the other.

    Returns:
        The function.
    """

    @intrinsic
    @no_type_check
    def tile(typing_context, a, a_at, a_stride, b, b_at, b_stride, inner, out, out_at, out_stride):
        @no_type_check
        def generate(context, builder, signature, args):
            a_at, a_stride, b_at, b_stride, inner, out_at, out_stride = (args[i] for i in (1, 2, 4, 5, 6, 8, 9))
            a_type, _, _, b_type, _, _, _, out_type, _, _ = signature.args
            vector = context.get_value_type(Vector(a_type.dtype))
            a_rows = [_place(context, builder, a_type, args[0], a_at, a_stride, r) for r in range(rows)]
            b_first = pointer(context, builder, b_type, args[3], b_at)
            sums = _zeros(builder, vector, rows, vectors)
            out_rows = [_place(context, builder, out_type, args[7], out_at, out_stride, r) for r in range(rows)]
            if adds:
                for row, row_sums in zip(out_rows, sums, strict=True):
                    for v, variable in enumerate(row_sums):
                        builder.store(_load_at(builder, row, v, vector), variable)
            with cgutils.for_range(builder, inner) as loop:
                b_row = builder.gep(b_first, [builder.mul(loop.index, b_stride)])
                columns = [_load_at(builder, b_row, v, vector) for v in range(vectors)]
                for r in range(rows):
                    number = broadcast_number(builder, builder.load(builder.gep(a_rows[r], [loop.index])), vector)
                    for v in range(vectors):
                        _add_product(builder, number, columns[v], sums[r][v])
            for r, row in enumerate(out_rows):
                for v in range(vectors):
                    place = builder.gep(row, [ir.Constant(out_at.type, v * vector.count)])
                    store_vector(builder, builder.load(sums[r][v]), place)
            return context.get_dummy_value()

        n = types.intp
        return types.void(a, n, n, b, n, n, n, out, n, n), generate

    return tile


def inner_product_tile(rows: int, columns: int) -> Any:
    """Return a function for compiled code that computes inner products of some rows of two matrices, over a batch.

    ``tile(a, a_at, a_step, b, b_at, b_step, nodes, batch, out, out_at, out_stride)`` computes
    out[r, c] = sum over the batch and over n of a[r, n] * b[c, n]. All arrays are flat. ``a_at`` is the place of the
    first number, rows follow each other, and ``a_step`` is the distance to the next matrix of the batch.

    Args:
        rows: The number of rows r.
        columns: The number of rows c.

    Returns:
        The function. There have to be at least as many ``nodes`` as a vector has numbers.
    """

    @intrinsic
    @no_type_check
    def tile(typing_context, a, a_at, a_step, b, b_at, b_step, nodes, batch, out, out_at, out_stride):
        @no_type_check
        def generate(context, builder, signature, args):
            a_at, a_step, b_at, b_step, nodes, batch, out_at, out_stride = (args[i] for i in (1, 2, 4, 5, 6, 7, 9, 10))
            a_type, _, _, b_type, _, _, _, _, out_type, _, _ = signature.args
            vector = context.get_value_type(Vector(a_type.dtype))
            lanes = ir.Constant(nodes.type, vector.count)
            sums = _zeros(builder, vector, rows, columns)
            rest = builder.srem(nodes, lanes)
            last = builder.sub(nodes, lanes)
            with cgutils.for_range(builder, batch) as image:
                a_image = builder.add(a_at, builder.mul(image.index, a_step))
                b_image = builder.add(b_at, builder.mul(image.index, b_step))
                a_rows = [_place(context, builder, a_type, args[0], a_image, nodes, r) for r in range(rows)]
                b_rows = [_place(context, builder, b_type, args[3], b_image, nodes, c) for c in range(columns)]
                with cgutils.for_range(builder, builder.sdiv(nodes, lanes)) as loop:
                    at = builder.mul(loop.index, lanes)
                    _add_products(builder, a_rows, b_rows, at, vector, sums, None)
                with builder.if_then(builder.icmp_signed(">", rest, ir.Constant(rest.type, 0))):
                    _add_products(builder, a_rows, b_rows, last, vector, sums, builder.sub(lanes, rest))
            for r in range(rows):
                row = _place(context, builder, out_type, args[8], out_at, out_stride, r)
                for c in range(columns):
                    total = _sum_of_numbers(builder, builder.load(sums[r][c]))
                    builder.store(total, builder.gep(row, [ir.Constant(out_at.type, c)]))
            return context.get_dummy_value()

        n = types.intp
        return types.void(a, n, n, b, n, n, n, n, out, n, n), generate

    return tile


@no_type_check
def _add_products(builder, a_rows, b_rows, at, vector, sums, first):
    """Add the products of a vector of each row. Numbers of ``a_rows`` before the ``first`` one count as 0."""
    b_vectors = [load_vector(builder, builder.gep(row, [at]), vector) for row in b_rows]
    for r, row in enumerate(a_rows):
        a_vector = load_vector(builder, builder.gep(row, [at]), vector)
        if first is not None:
            number = ir.IntType(32)
            lanes = ir.Constant(ir.VectorType(number, vector.count), list(range(vector.count)))
            skipped = broadcast_number(builder, builder.trunc(first, number), lanes.type)
            is_new = builder.icmp_signed(">=", lanes, skipped)
            a_vector = builder.select(is_new, a_vector, ir.Constant(vector, [0.0] * vector.count))
        for c, b_vector in enumerate(b_vectors):
            _add_product(builder, a_vector, b_vector, sums[r][c])


@no_type_check
def _zeros(builder, vector, rows, columns):
    """Return variables for sums, which LLVM keeps in registers."""
    zero = ir.Constant(vector, [0.0] * vector.count)
    sums = [[cgutils.alloca_once(builder, vector) for _ in range(columns)] for _ in range(rows)]
    for row in sums:
        for variable in row:
            builder.store(zero, variable)
    return sums


@no_type_check
def _add_product(builder, a, b, variable):
    builder.store(fused_multiply_add(builder, a, b, builder.load(variable)), variable)


@no_type_check
def _sum_of_numbers(builder, vector):
    """Return the sum of the numbers of a vector: its upper half is added to its lower half until one is left."""
    count = vector.type.count
    while count > 1:
        count //= 2
        halves = [
            builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), count), places))
            for places in (list(range(count)), list(range(count, 2 * count)))
        ]
        vector = builder.fadd(*halves)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


@no_type_check
def _place(context, builder, array_type, array, at, stride, row):
    """Return the address of the first number of a row."""
    offset = builder.add(at, builder.mul(stride, ir.Constant(stride.type, row)))
    return pointer(context, builder, array_type, array, offset)


@no_type_check
def _load_at(builder, row, number, vector):
    """Return one of the vectors of a row."""
    return load_vector(builder, builder.gep(row, [ir.Constant(ir.IntType(64), number * vector.count)]), vector)
