"""The matrix products of a training step: how many operations they need, and how long they take.

The profiler of PyTorch times an operator from its call to its return, in the thread that calls it, so that the time is
that of the wall clock, however many threads compute. PyTorch's execution trace has the strides of the operands too, so
that a product can be repeated alone. Our own kernels of products are no operators of PyTorch; within
:func:`own_kernels_as_operators` they are called through operators that are registered here.
"""

import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ExecutionTraceObserver

from tigranet.ops import map_products, mixing
from tigranet.ops.map_products import mix_into, weight_gradient_into

ADDENDS = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}
"""The operators of PyTorch that are counted, with the number of arguments before the two factors."""
MIX, WEIGHT_GRADIENT = "tigranet_benchmarks::mix_into", "tigranet_benchmarks::weight_gradient_into"
"""The operators of :mod:`tigranet.ops.map_products`. Their first argument is the result."""
OPERATORS = {*ADDENDS, MIX, WEIGHT_GRADIENT}
UNCOUNTED = ("aten::addbmm", "aten::addmv", "aten::dot", "aten::mv", "aten::vdot", "aten::convolution")
"""Beginnings of the names of operators that are products too, but whose operations are not counted here."""
OPERAND_BYTES = 64 * 2**20
"""Size of all copies of the operands of a product that is timed alone: more than the caches of most machines hold."""
MAX_COPIES = 16
ALONE_CALLS, ALONE_SECONDS = 5, 0.05
"""A product that is timed alone is repeated until both the number of calls and the duration are reached."""


class Product(NamedTuple):
    """A call of an operator that multiplies matrices of float32 numbers."""

    operator: str
    """One of :data:`OPERATORS`."""
    shapes: tuple[tuple[int, ...], ...]
    """The shapes of the tensors among its arguments. With PyTorch's operators, a last one, after the factors, is that
    of the argument ``out``."""
    strides: tuple[tuple[int, ...], ...] = ()
    """Their strides, if they are known."""

    @property
    def flop(self) -> int:
        """Number of multiplications and additions: two for each term of each sum."""
        if self.operator in (MIX, WEIGHT_GRADIENT):
            out, first_factor, maps = self.shapes
            mixtures = out if self.operator == MIX else first_factor
            return 2 * math.prod(mixtures) * maps[1]
        first = ADDENDS[self.operator]
        left, right = self.shapes[first : first + 2]
        return 2 * math.prod(left) * right[-1]

    def build(self) -> Callable[[], object]:
        """Return a function that computes this product of random matrices, with new memory for them."""
        operands = [_random(*layout) for layout in zip(self.shapes, self.strides, strict=True)]
        namespace, name = self.operator.split("::")
        if namespace != "aten":
            own_operator = getattr(getattr(torch.ops, namespace), name)
            return lambda: own_operator(*operands)
        operator = getattr(torch, name)
        count = ADDENDS[self.operator] + 2
        if len(operands) > count:
            return lambda: operator(*operands[:count], out=operands[count])
        return lambda: operator(*operands)

    @property
    def num_bytes(self) -> int:
        """Size of the operands in memory."""
        return 4 * sum(_storage_size(*layout) for layout in zip(self.shapes, self.strides, strict=True))


@torch.library.custom_op(MIX, mutates_args={"out"})
def _mix_into(out: Tensor, weights: Tensor, y: Tensor) -> None:
    mix_into(out, weights, y)


@torch.library.custom_op(WEIGHT_GRADIENT, mutates_args={"out"})
def _weight_gradient_into(out: Tensor, g: Tensor, y: Tensor) -> None:
    weight_gradient_into(out, g, y)


@contextmanager
def own_kernels_as_operators() -> Iterator[None]:
    """Let operations within the block call our products through operators, which profilers and traces see."""
    with ExitStack() as stack:
        for module in (map_products, mixing):
            stack.enter_context(patch.object(module, "mix_into", _mix_into))
            stack.enter_context(patch.object(module, "weight_gradient_into", _weight_gradient_into))
        yield


def _storage_size(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    return 1 + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))


def _random(shape: tuple[int, ...], strides: tuple[int, ...]) -> torch.Tensor:
    return torch.rand(_storage_size(shape, strides)).as_strided(shape, strides)


def profiled_products(events: Iterable[FunctionEvent], without: str | None = None) -> list[tuple[Product, float]]:
    """Find the matrix products among the events of a profiler.

    Args:
        events: The events, with the shapes of the arguments.
        without: Name of a block of ``record_function`` whose products are left out.

    Returns:
        Each product with its seconds.

    Raises:
        ValueError: If there are products that are not counted, such as convolutions.
    """
    products = []
    for event in events:
        if _is_product(event.name) and not _is_inside(_names_above(event), without):
            shapes: Any = event.input_shapes
            tensors = tuple(tuple(shape) for shape in shapes if shape)
            products.append((Product(event.name, tensors), event.cpu_time_total / 1e6))
    return products


def _is_product(name: str) -> bool:
    if name.startswith(UNCOUNTED):
        raise ValueError(f"expected no products other than {', '.join(ADDENDS)}, got {name}: it is not counted yet")
    return name in OPERATORS


def _is_inside(names_above: Iterable[str], block: str | None) -> bool:
    """Whether an operator with these operators and blocks above it belongs to the block, or to another product."""
    return any(name == block or name in OPERATORS for name in names_above)


def _names_above(event: FunctionEvent) -> Iterator[str]:
    above = event.cpu_parent
    while above is not None:
        yield above.name
        above = above.cpu_parent


@contextmanager
def trace_products(without: str | None = None) -> Iterator[list[Product]]:
    """Record the products within the block, with their strides.

    Args:
        without: Name of a block of ``record_function`` whose products are left out.

    Yields:
        A list, which has the products after the block.
    """
    products: list[Product] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        observer = ExecutionTraceObserver().register_callback(str(path))
        observer.start()
        try:
            yield products
        finally:
            observer.stop()
            observer.unregister_callback()
        products += _traced_products(json.loads(path.read_text())["nodes"], without)


def _traced_products(nodes: list[dict[str, Any]], without: str | None) -> list[Product]:
    """Find the matrix products among the nodes of an execution trace."""
    numbered = {node["id"]: node for node in nodes}

    def names_above(node: dict[str, Any]) -> Iterator[str]:
        while (parent := numbered.get(node["ctrl_deps"])) is not None and parent is not node:
            node = parent
            yield node["name"]

    products = []
    for node in nodes:
        if _is_product(node["name"]) and not _is_inside(names_above(node), without):
            arguments = zip(node["inputs"]["shapes"], node["inputs"]["strides"], strict=True)
            tensors = [(tuple(shape), tuple(strides)) for shape, strides in arguments if shape]
            shapes, strides = zip(*tensors, strict=True)
            products.append(Product(node["name"], shapes, strides))
    return products


def seconds_alone(products: list[Product]) -> dict[Product, float]:
    """Time each different product alone.

    The operands change from call to call, so that a cache does not hold all of them.

    Args:
        products: The products, with strides.

    Returns:
        The median seconds of one call of each different product.
    """
    return {product: _seconds_alone(product) for product in Counter(products)}


def _seconds_alone(product: Product) -> float:
    copies = max(1, min(MAX_COPIES, OPERAND_BYTES // product.num_bytes))
    calls = [product.build() for _ in range(copies)]
    for call in calls:
        call()
    seconds: list[float] = []
    while len(seconds) < ALONE_CALLS or sum(seconds) < ALONE_SECONDS:
        for call in calls:
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    return median(seconds)
