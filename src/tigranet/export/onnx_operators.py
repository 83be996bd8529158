"""The ONNX operators for each operation of the portable networks."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from tigranet.export.onnx_graph import OnnxGraph

Translation = Callable[..., Any]
"""Writes the operators of one operation. Its arguments are the graph, the node, and the operation's own arguments."""
OPERATORS: dict[str, Translation] = {}
"""The translation of each operation, by its name in PyTorch."""


def translates(*operations: str) -> Callable[[Translation], Translation]:
    """Add a function to :data:`OPERATORS`.

    Args:
        *operations: Names of the operations that the function translates.

    Returns:
        A decorator.
    """

    def register(translation: Translation) -> Translation:
        OPERATORS.update(dict.fromkeys(operations, translation))
        return translation

    return register


def _register_elementwise() -> None:
    """Register the operations that are one operator with the same arguments."""
    unary = {"relu": "Relu", "abs": "Abs", "sqrt": "Sqrt", "neg": "Neg", "exp": "Exp"}
    binary = {
        "add": "Add", "sub": "Sub", "mul": "Mul", "truediv": "Div", "div": "Div", "gt": "Greater",
        "ge": "GreaterOrEqual", "and": "And", "minimum": "Min", "sym_min": "Min",
    }  # fmt: skip
    for operation, operator in unary.items():
        OPERATORS[operation] = lambda graph, node, x, *_, operator=operator, **__: graph.write(operator, x)
    for operation, operator in binary.items():
        OPERATORS[operation] = _binary(operator)
    for operation, operator in (("rsub", "Sub"), ("rtruediv", "Div")):
        OPERATORS[operation] = _binary(operator, reverse=True)
    for operation, operator in (("amax", "ReduceMax"), ("amin", "ReduceMin"), ("mean", "ReduceMean")):
        OPERATORS[operation] = _reduction(operator)
    OPERATORS["sum"] = _reduction("ReduceSum")


def _binary(operator: str, reverse: bool = False) -> Translation:
    def translation(graph: OnnxGraph, node: fx.Node, a: Any, b: Any) -> str:
        a, b = (b, a) if reverse else (a, b)
        numbers = bool | int | float
        dtypes = {value.dtype for value in map(graph.value, (a, b)) if isinstance(value, Tensor)}
        if operator in ("Add", "Sub", "Mul", "Div") and torch.bool in dtypes and len(dtypes) == 2:
            # A mask counts as 0 and 1.
            a, b = (_cast(graph, x, torch.float32) if graph.value(x).dtype == torch.bool else x for x in (a, b))
        if isinstance(a, numbers):
            a = graph.number(a, b)
        elif isinstance(b, numbers):
            b = graph.number(b, a)
        return graph.write(operator, a, b)

    return translation


def _reduction(operator: str) -> Translation:
    def translation(graph: OnnxGraph, node: fx.Node, x: Any, dim: Any = None, keepdim: bool = False) -> str:
        axes = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
        return graph.write(operator, x, axes, keepdims=int(keepdim))

    return translation


_register_elementwise()


@translates("conv2d")
def _conv2d(graph: OnnxGraph, node: fx.Node, x: Any, weight: Any, bias: Any = None) -> str:
    return graph.write("Conv", x, weight, bias)


@translates("convolve_with_rotations")
def _convolve_with_rotations(
    graph: OnnxGraph, node: fx.Node, y: Any, filters: Any, bias: Any, weight: Any, differences: Any, basis: Any
) -> str:
    """Write the axes (out, j, i, in, basis) of the selected weights, then (j, out, i, in, pixels) of the filters."""
    selected = graph.write("Gather", weight, differences, axis=1)
    rotated = graph.write("MatMul", graph.write("Transpose", selected, perm=[1, 0, 2, 3, 4]), basis)
    return graph.write("Conv", y, graph.write("Reshape", rotated, list(graph.value(filters).shape)), bias)


@translates("convolve_each_map")
def _convolve_each_map(graph: OnnxGraph, node: fx.Node, z: Any, stencil: Any, padding: int = 0, stride: int = 1) -> str:
    maps = graph.value(z).shape[1]
    if isinstance(stencil, fx.Node) and stencil.op != "get_attr":  # It is computed in the graph.
        weight = graph.write("Expand", stencil, [maps, 1, 1, 1])
    else:
        weight = graph.constant(graph.value(stencil).expand(maps, 1, -1, -1))
    return graph.write("Conv", z, weight, group=maps, pads=[padding] * 4, strides=[stride] * 2)


@translates("linear")
def _linear(graph: OnnxGraph, node: fx.Node, x: Any, weight: Any, bias: Any = None) -> str:
    return graph.write("Gemm", x, weight, bias, transB=1)


@translates("pad")
def _pad(
    graph: OnnxGraph, node: fx.Node, x: Any, sides: Sequence[int], mode: str = "constant", value: Any = None
) -> str:
    others = [0] * (graph.value(x).ndim - len(sides) // 2)
    before, after = list(sides[::2])[::-1], list(sides[1::2])[::-1]
    amount = [*others, *before, *others, *after]
    if mode == "replicate":
        return graph.write("Pad", x, amount, mode="edge")
    return graph.write("Pad", x, amount, graph.number(value, x))


@translates("cat")
def _cat(graph: OnnxGraph, node: fx.Node, parts: Sequence[Any], dim: int = 0) -> str:
    return graph.write("Concat", *parts, axis=dim)


@translates("stack")
def _stack(graph: OnnxGraph, node: fx.Node, parts: Sequence[Any], dim: int = 0) -> str:
    return graph.write("Concat", *(graph.write("Unsqueeze", part, [dim]) for part in parts), axis=dim)


@translates("split")
def _split(graph: OnnxGraph, node: fx.Node, x: Any, size: int, dim: int) -> tuple[str, ...]:
    count = graph.value(x).shape[dim] // size
    return graph.write("Split", x, axis=dim, num_outputs=count, outputs=count)


@translates("permute")
def _permute(graph: OnnxGraph, node: fx.Node, x: Any, *axes: int) -> str:
    return graph.write("Transpose", x, perm=list(axes))


@translates("unsqueeze")
def _unsqueeze(graph: OnnxGraph, node: fx.Node, x: Any, dim: int) -> str:
    return graph.write("Unsqueeze", x, [dim])


@translates("square")
def _square(graph: OnnxGraph, node: fx.Node, x: Any) -> str:
    return graph.write("Mul", x, x)


@translates("mod", "remainder")
def _remainder(graph: OnnxGraph, node: fx.Node, x: Any, divisor: Any) -> str:
    """Write x - n floor(x / n), because the operator Mod of ONNX has the sign of x for floating-point numbers."""
    divisor = graph.number(divisor, x)
    quotient = graph.write("Floor", graph.write("Div", x, divisor))
    return graph.write("Sub", x, graph.write("Mul", quotient, divisor))


@translates("floordiv")
def _quotient_of_sizes(graph: OnnxGraph, node: fx.Node, size: Any, divisor: int) -> str:
    """Write a quotient that is rounded down. The operator Div of ONNX rounds towards zero, and no size is negative."""
    return graph.write("Div", size, graph.number(divisor, size))


@translates("clamp")
def _clamp(graph: OnnxGraph, node: fx.Node, x: Any, min: Any = None, max: Any = None) -> str:
    return graph.write("Clip", x, *(graph.number(limit, x) for limit in (min, max)))


@translates("cumsum")
def _cumsum(graph: OnnxGraph, node: fx.Node, x: Any, dim: int) -> str:
    return graph.write("CumSum", x, dim)


@translates("where")
def _where(graph: OnnxGraph, node: fx.Node, condition: Any, x: Any, y: Any) -> str:
    return graph.write("Where", condition, graph.number(x, y), graph.number(y, x))


@translates("any")
def _any(graph: OnnxGraph, node: fx.Node, x: Any, dim: int, keepdim: bool = False) -> str:
    largest = graph.write("ReduceMax", _cast(graph, x, torch.float32), [dim], keepdims=int(keepdim))
    return _cast(graph, largest, torch.bool)


@translates("float")
def _float(graph: OnnxGraph, node: fx.Node, x: Any) -> str:
    return _cast(graph, x, torch.float32)


@translates("long")
def _long(graph: OnnxGraph, node: fx.Node, x: Any) -> str:
    return _cast(graph, x, torch.int64)


def _cast(graph: OnnxGraph, x: Any, dtype: torch.dtype) -> str:
    from onnx import TensorProto

    kinds = {torch.float32: TensorProto.FLOAT, torch.int64: TensorProto.INT64, torch.bool: TensorProto.BOOL}
    return graph.write("Cast", x, to=kinds[dtype])


@translates("flatten")
def _flatten(graph: OnnxGraph, node: fx.Node, x: Any, start_dim: int = 0) -> str:
    return graph.write("Reshape", x, [*[0] * start_dim, -1])  # 0 keeps the length of an axis.


@translates("unflatten")
def _unflatten(graph: OnnxGraph, node: fx.Node, x: Any, dim: int, sizes: Sequence[int]) -> str:
    """Write the new shape: the axes in front of ``dim``, the new axes, and the axes behind it."""
    shape = graph.write("Shape", x)
    front, behind = graph.write("Slice", shape, [0], [dim]), graph.write("Slice", shape, [dim + 1], [2**62])
    return graph.write("Reshape", x, graph.write("Concat", front, list(sizes), behind, axis=0))


@translates("reshape")
def _reshape(graph: OnnxGraph, node: fx.Node, x: Any, *shape: Any) -> str:
    return graph.write("Reshape", x, shape[0] if isinstance(shape[0], fx.Node) else list(shape))


@translates("topk")
def _topk(graph: OnnxGraph, node: fx.Node, x: Any, k: Any, dim: int = -1) -> tuple[str, str]:
    count = graph.write("Reshape", k, [1])
    return graph.write("TopK", x, count, axis=dim, sorted=0, outputs=2)


@translates("scatter")
def _scatter(graph: OnnxGraph, node: fx.Node, x: Any, dim: int, index: Any, value: bool) -> str:
    updates = graph.write("Expand", graph.number(value, x), graph.write("Shape", index))
    return graph.write("ScatterElements", x, index, updates, axis=dim)


@translates("index_select")
def _index_select(graph: OnnxGraph, node: fx.Node, x: Any, dim: int, index: Any) -> str:
    return graph.write("Gather", x, index, axis=dim)


@translates("take")
def _take(graph: OnnxGraph, node: fx.Node, table: Any, index: Any) -> str:
    return graph.write("Gather", table, index)


@translates("ones_like")
def _ones_like(graph: OnnxGraph, node: fx.Node, x: Any) -> str:
    return graph.write("Expand", 1.0, graph.write("Shape", x))


@translates("zeros_like")
def _zeros_like(graph: OnnxGraph, node: fx.Node, x: Any, dtype: torch.dtype) -> str:
    return graph.write("Expand", torch.zeros((), dtype=dtype), graph.write("Shape", x))


@translates("softmax")
def _softmax(graph: OnnxGraph, node: fx.Node, x: Any, dim: int, **_: Any) -> str:
    return graph.write("Softmax", x, axis=dim)


@translates("getattr")
def _getattr(graph: OnnxGraph, node: fx.Node, x: Any, name: str) -> Any:
    if name == "shape":
        return graph.write("Shape", x)
    return graph.names[x][{"values": 0, "indices": 1}[name]]


@translates("getitem")
def _getitem(graph: OnnxGraph, node: fx.Node, x: Any, index: Any) -> Any:
    if isinstance(graph.value(x), torch.Size):
        return graph.write("Gather", x, index)
    if isinstance(graph.value(x), tuple):
        return graph.names[x][index]
    index = index if isinstance(index, tuple) else (index,)
    slices = {axis: part for axis, part in enumerate(index) if isinstance(part, slice) and part != slice(None)}
    points = {axis: part for axis, part in enumerate(index) if isinstance(part, int)}
    if slices:
        starts = [part.start or 0 for part in slices.values()]
        ends = [2**62 if part.stop is None else part.stop for part in slices.values()]
        x = graph.write("Slice", x, starts, ends, list(slices))
    for axis in sorted(points, reverse=True):
        x = graph.write("Gather", x, points[axis], axis=axis)
    return x
