"""Vectors of 64 bytes as values in compiled code: 16 numbers of type float32, or 8 of type float64.

LLVM turns a loop over an array into vector instructions, but before the first one it compares the addresses of all
arrays of the loop, to find out whether they overlap. In a loop over a few hundred numbers this takes longer than the
arithmetic. The functions below are vector instructions themselves, for kernels whose inner loops are that short. A CPU
with shorter registers uses several of them for one vector.

They do not check bounds, and an offset counts from the start of an array: it may not be negative.
"""

from typing import Any, no_type_check

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from tigranet.ops.cpu.arrays import VECTOR_BYTES

_Type: Any = types.Type
_Model: Any = models.PrimitiveModel


class Vector(_Type):  # type: ignore[misc]
    """The type of a vector in compiled code.

    Args:
        dtype: numba's type of the numbers, float32 or float64.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype, self.lanes = dtype, 8 * VECTOR_BYTES // dtype.bitwidth
        super().__init__(f"Vector({dtype}, {self.lanes})")


@register_model(Vector)
class _VectorModel(_Model):  # type: ignore[misc]
    def __init__(self, manager: Any, vector: Any) -> None:
        number = ir.FloatType() if vector.dtype == types.float32 else ir.DoubleType()
        super().__init__(manager, vector, ir.VectorType(number, vector.lanes))


@intrinsic
@no_type_check
def load(typing_context, array, at):
    """Return the numbers from ``array[at]`` on, of a contiguous array of one axis."""

    @no_type_check
    def generate(context, builder, signature, args):
        vector = context.get_value_type(signature.return_type)
        return load_vector(builder, pointer(context, builder, signature.args[0], *args), vector)

    return Vector(array.dtype)(array, types.intp), generate


@intrinsic
@no_type_check
def store(typing_context, array, at, vector):
    """Store a vector from ``array[at]`` on."""

    @no_type_check
    def generate(context, builder, signature, args):
        store_vector(builder, args[2], pointer(context, builder, signature.args[0], *args[:2]))
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
@no_type_check
def broadcast(typing_context, array, at):
    """Return a vector of copies of ``array[at]``."""

    @no_type_check
    def generate(context, builder, signature, args):
        vector = context.get_value_type(signature.return_type)
        number = builder.load(pointer(context, builder, signature.args[0], *args))
        return broadcast_number(builder, number, vector)

    return Vector(array.dtype)(array, types.intp), generate


@intrinsic
@no_type_check
def add(typing_context, a, b):
    """Return the sums of two vectors."""
    return a(a, b), lambda context, builder, signature, args: builder.fadd(*args)


@intrinsic
@no_type_check
def subtract(typing_context, a, b):
    """Return the differences of two vectors."""
    return a(a, b), lambda context, builder, signature, args: builder.fsub(*args)


@intrinsic
@no_type_check
def multiply(typing_context, a, b):
    """Return the products of two vectors."""
    return a(a, b), lambda context, builder, signature, args: builder.fmul(*args)


@intrinsic
@no_type_check
def multiply_add(typing_context, a, b, c):
    """Return a * b + c, rounded once where the CPU has an instruction for it."""
    return a(a, b, c), lambda context, builder, signature, args: fused_multiply_add(builder, *args)


@intrinsic
@no_type_check
def transpose(typing_context, array, at, stride, out, out_at, out_stride):
    """Transpose a square matrix of as many rows as a vector has numbers.

    Rows of ``array`` start at ``at``, ``at + stride`` and so on, and those of ``out`` accordingly. The matrix stays in
    registers: to interleave the upper half of the rows with the lower half shifts the binary digits of the place of
    each number by one, so that after as many times as a column index has digits, row and column are exchanged.
    """

    @no_type_check
    def generate(context, builder, signature, args):
        vector = context.get_value_type(Vector(signature.args[0].dtype))
        lanes, half = vector.count, vector.count // 2
        rows = [
            load_vector(builder, pointer(context, builder, signature.args[0], args[0], start), vector)
            for start in _starts(builder, args[1], args[2], lanes)
        ]
        low = _indices([i // 2 + (i % 2) * lanes for i in range(lanes)])
        high = _indices([half + i // 2 + (i % 2) * lanes for i in range(lanes)])
        for _ in range(half.bit_length()):
            pairs = list(zip(rows[:half], rows[half:], strict=True))
            rows = [builder.shuffle_vector(a, b, which) for a, b in pairs for which in (low, high)]
        for row, start in zip(rows, _starts(builder, args[4], args[5], lanes), strict=True):
            store_vector(builder, row, pointer(context, builder, signature.args[3], args[3], start))
        return context.get_dummy_value()

    places = types.intp, types.intp
    return types.void(array, *places, out, *places), generate


@no_type_check
def pointer(context, builder, array_type, array, at):
    """Return the address of ``array[at]``, in the code that an intrinsic generates."""
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [at])


@no_type_check
def load_vector(builder, address, vector):
    """Return the vector at an address, in the code that an intrinsic generates."""
    loaded = builder.load(builder.bitcast(address, vector.as_pointer()))
    loaded.align = VECTOR_BYTES // vector.count  # a number's size: rows of maps start anywhere
    return loaded


@no_type_check
def store_vector(builder, value, address):
    """Store a vector at an address, in the code that an intrinsic generates."""
    stored = builder.store(value, builder.bitcast(address, value.type.as_pointer()))
    stored.align = VECTOR_BYTES // value.type.count


@no_type_check
def broadcast_number(builder, number, vector):
    """Return a vector of copies of a number, in the code that an intrinsic generates."""
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, first, _indices([0] * vector.count))


@no_type_check
def fused_multiply_add(builder, a, b, c):
    """Return a * b + c of vectors, in the code that an intrinsic generates."""
    vector = a.type
    name = f"llvm.fmuladd.v{vector.count}f{8 * VECTOR_BYTES // vector.count}"
    function_type = ir.FunctionType(vector, [vector] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), [a, b, c])


@no_type_check
def _indices(places):
    return ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)


@no_type_check
def _starts(builder, at, stride, count):
    return [builder.add(at, builder.mul(stride, ir.Constant(stride.type, i))) for i in range(count)]
