"""Benchmark of the statistical layer with 20 maps and order 12: forward, backward, and growth with the image size.

``python -m benchmarks.statistics`` compares only the fused and the plain version, in a minute: in new processes without
settings for threads or memory, once with this package imported before PyTorch, and once after it.
"""

import json
from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.peers import cheb_conv, cheb_conv_as_called, csr, dense, statistics_by
from benchmarks.timing import DEVICE, Row, compare, saved_megabytes, with_gradients, without_gradients
from benchmarks.user_process import run_without_settings
from tigranet import GridLaplacian, Statistics
from tigranet.ops import using

MAPS, ORDER = 20, 12
BATCHES = {26: 100, 50: 25, 128: 4} if DEVICE.type == "cpu" else {26: 500, 50: 200}
MAX_DENSE_SIZE = 50  # the dense matrix of a larger image would take a gigabyte


def measure(compiled: bool = True) -> Iterator[Row]:
    """Time all implementations for several image sizes, with ``torch.compile`` if ``compiled``."""
    for size, batch in BATCHES.items():
        yield from at_size(size, batch, compiled)


def at_size(size: int, batch: int, compiled: bool, peers: bool = True) -> Iterator[Row]:
    """Time implementations for images of one size, after checking that their results agree.

    Args:
        size: Side length of the images.
        batch: Number of images.
        compiled: Whether to time the plain version with ``torch.compile`` too.
        peers: Whether to time other libraries and other ways to compute the same too.

    Yields:
        The rows.
    """
    torch.manual_seed(0)
    torch._dynamo.reset()
    grid, layer = GridLaplacian(size, size), Statistics(ORDER)
    z = torch.randn(batch, MAPS, size * size).to(DEVICE)
    active = torch.rand(z.shape).to(DEVICE) < 0.5
    nodes_last = z, active  # every implementation gets the memory layout that suits it best
    nodes_middle = tuple(tensor.transpose(1, 2).contiguous() for tensor in nodes_last)
    nodes_first = tuple(tensor.permute(2, 0, 1).flatten(1).contiguous() for tensor in nodes_last)
    one_graph = tuple(tensor.flatten(0, 1) for tensor in nodes_middle)
    for signal, _ in (nodes_last, nodes_middle, nodes_first, one_graph):
        signal.requires_grad_()
    functions = {
        "fused": (z, partial(_statistics, "fused", layer, z, grid, active)),
        "plain": (z, partial(_statistics, "plain", layer, z, grid, active)),
    }
    if compiled:
        compiled_layer = torch.compile(layer, dynamic=False)
        functions["plain, compiled"] = z, partial(_statistics, "plain", compiled_layer, z, grid, active)
    if peers:
        one_call = cheb_conv_as_called(size, batch, DEVICE)
        functions["ChebConv, as called"] = one_graph[0], partial(one_call, *one_graph, ORDER)
        propagate, multiply = cheb_conv(size, DEVICE), csr(size, DEVICE)
        functions["ChebConv"] = nodes_middle[0], partial(statistics_by, propagate, *nodes_middle, ORDER, 1)
        functions["ChebConv, nodes first"] = nodes_first[0], partial(statistics_by, propagate, *nodes_first, ORDER, 0)
        functions["CSR"] = nodes_first[0], partial(statistics_by, multiply, *nodes_first, ORDER, 0)
    if peers and size <= MAX_DENSE_SIZE:
        functions["dense"] = z, partial(statistics_by, dense(size, DEVICE), *nodes_last, ORDER, 2)
    expected = functions["plain"][1]().flatten()
    for _, function in functions.values():
        torch.testing.assert_close(function().flatten(), expected, rtol=1e-2, atol=1e-3)
    saved = {name: saved_megabytes(function) for name, (_, function) in functions.items()}
    forward = {name: without_gradients(function) for name, (_, function) in functions.items()}
    copy, source = torch.empty_like(z), z.detach()
    forward["copy of the input"] = lambda: copy.copy_(source)
    both = {name: with_gradients(function, [signal]) for name, (signal, function) in functions.items()}
    yield from compare("statistics", size, forward)
    yield from compare("statistics, with backward", size, both, saved)


def growth() -> Iterator[Row]:
    """Time one image of 20 maps for growing sizes."""
    for size in (26, 50, 128, 256, 512):
        yield from _at_growing_size(size)


def _at_growing_size(size: int) -> Iterator[Row]:
    z = torch.randn(1, MAPS, size * size).to(DEVICE).requires_grad_()
    grid = GridLaplacian(size, size)
    warm_up = (
        z.detach().clone().requires_grad_()
    )  # code that is compiled in the first call keeps a reference to its input
    for mode in ("fused", "plain"):
        with_gradients(partial(_statistics, mode, Statistics(ORDER), warm_up, grid, None), [warm_up])()
    forward = {mode: partial(_statistics, mode, Statistics(ORDER), z, grid, None) for mode in ("fused", "plain")}
    saved = {name: saved_megabytes(function) for name, function in forward.items()}
    both = {name: with_gradients(function, [z]) for name, function in forward.items()}
    forward_only = {name: without_gradients(function) for name, function in forward.items()}
    yield from compare("growth", size, forward_only, rounds=7)
    yield from compare("growth, with backward", size, both, saved, rounds=7)


def _statistics(mode, layer, z, grid, active):
    with using(mode):
        return layer(z, grid, active)


def print_plain_times() -> None:
    """Print how many times as long the plain version takes, as JSON: rows of work, size and ratio."""
    rows = [row for size, batch in BATCHES.items() for row in at_size(size, batch, compiled=False, peers=False)]
    print(json.dumps([(row.work, row.size, row.times_fused) for row in rows if row.candidate == "plain"]))


def main() -> None:
    """Compare the fused with the plain version, in new processes."""
    for first in ("tigranet", "torch"):
        code = f"import {first}; from benchmarks import statistics; statistics.print_plain_times()"
        for work, size, ratio in run_without_settings(["-c", code]):
            print(f"{first} imported first: {work:26} {size:4} pixels, plain {ratio:5.1f} x fused", flush=True)


if __name__ == "__main__":
    main()
