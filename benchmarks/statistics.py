"""The statistical layer, 20 maps, order 12: forward, forward and backward, and how they grow."""

from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.peers import cheb_conv, cheb_conv_as_called, csr, dense, statistics_by
from benchmarks.timing import DEVICE, Row, compare, kept_for_backward, with_gradients, without_gradients
from tigranet import GridLaplacian, Statistics
from tigranet.ops import using

MAPS, ORDER = 20, 12
BATCHES = {26: 100, 50: 25, 128: 4} if DEVICE.type == "cpu" else {26: 500, 50: 200}
DENSE = 50  # a larger matrix would take a gigabyte


def measure(compiled: bool = True) -> Iterator[Row]:
    for size, batch in BATCHES.items():
        yield from at_size(size, batch, compiled)


def at_size(size: int, batch: int, compiled: bool) -> Iterator[Row]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    grid, layer = GridLaplacian(size, size), Statistics(ORDER)
    z = torch.randn(batch, MAPS, size * size).to(DEVICE)
    active = torch.rand(z.shape).to(DEVICE) < 0.5
    last = z, active  # the axis of the nodes, where each likes it best
    middle = tuple(tensor.transpose(1, 2).contiguous() for tensor in last)
    first = tuple(tensor.permute(2, 0, 1).flatten(1).contiguous() for tensor in last)
    union = tuple(tensor.flatten(0, 1) for tensor in middle)
    for signal, _ in (last, middle, first, union):
        signal.requires_grad_()
    functions = {
        "fused": (z, partial(_ours, "fused", layer, z, grid, active)),
        "plain": (z, partial(_ours, "plain", layer, z, grid, active)),
    }
    if compiled:
        fast = torch.compile(layer, dynamic=False)
        functions["plain, compiled"] = z, partial(_ours, "plain", fast, z, grid, active)
    functions["ChebConv, as called"] = union[0], partial(cheb_conv_as_called(size, batch, DEVICE), *union, ORDER)
    functions["ChebConv"] = middle[0], partial(statistics_by, cheb_conv(size, DEVICE), *middle, ORDER, 1)
    functions["ChebConv, nodes first"] = first[0], partial(statistics_by, cheb_conv(size, DEVICE), *first, ORDER, 0)
    functions["CSR"] = first[0], partial(statistics_by, csr(size, DEVICE), *first, ORDER, 0)
    if size <= DENSE:
        functions["dense"] = z, partial(statistics_by, dense(size, DEVICE), *last, ORDER, 2)
    wanted = functions["plain"][1]().flatten()
    for _, function in functions.values():
        torch.testing.assert_close(function().flatten(), wanted, rtol=1e-2, atol=1e-3)
    kept = {name: kept_for_backward(function) for name, (_, function) in functions.items()}
    forward = {name: without_gradients(function) for name, (_, function) in functions.items()}
    copy, source = torch.empty_like(z), z.detach()
    forward["copy of the input"] = lambda: copy.copy_(source)
    both = {name: with_gradients(function, [signal]) for name, (signal, function) in functions.items()}
    yield from compare("statistics", size, forward)
    yield from compare("statistics, with backward", size, both, kept)


def growth() -> Iterator[Row]:
    """One image of 20 maps, ever larger."""
    for size in (26, 50, 128, 256, 512):
        yield from _grown(size)


def _grown(size: int) -> Iterator[Row]:
    z = torch.randn(1, MAPS, size * size).to(DEVICE).requires_grad_()
    grid = GridLaplacian(size, size)
    warm = z.detach().clone().requires_grad_()  # what is compiled in a first call keeps hold of its input
    for mode in ("fused", "plain"):
        with_gradients(partial(_ours, mode, Statistics(ORDER), warm, grid, None), [warm])()
    forward = {mode: partial(_ours, mode, Statistics(ORDER), z, grid, None) for mode in ("fused", "plain")}
    kept = {name: kept_for_backward(function) for name, function in forward.items()}
    both = {name: with_gradients(function, [z]) for name, function in forward.items()}
    alone = {name: without_gradients(function) for name, function in forward.items()}
    yield from compare("growth", size, alone, rounds=7)
    yield from compare("growth, with backward", size, both, kept, rounds=7)


def _ours(mode, layer, z, grid, active):
    with using(mode):
        return layer(z, grid, active)
