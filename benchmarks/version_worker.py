"""The process that :mod:`benchmarks.compare_versions` starts for each version: reads names of work, answers times.

It uses public names only, which all versions share.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

from tigranet import DynamicPool, GridLaplacian, SpectralConv, Statistics, TIGraNet

DEVICE = torch.device(sys.argv[1])
Work = Callable[[], None]
MINIMUM_SECONDS = 0.02
"""A timing repeats short work until it has taken about this long."""


def builders() -> dict[str, Callable[[], Work]]:
    """Return all pieces of work by name, each as a function that builds it."""
    named: dict[str, Callable[[], Work]] = {}
    for size in (26, 50, 128):
        batch = max(1, (500 if DEVICE.type == "cuda" else 20) * 26**2 // size**2)
        for layer in ("statistics", "statistics with backward", "convolution with backward", "pooling"):
            named[f"{layer}, {size}x{size}"] = partial(layer_work, layer, size, batch)
    for preset, size, batch in (
        ("paper-small", 28, 50), ("paper", 26, 100), ("oriented-small", 28, 50), ("oriented", 28, 100),
        ("oriented-large", 28, 50), ("oriented-small", 64, 16),
    ):  # fmt: skip
        for count in (1, batch):
            named[f"{preset}, {size}x{size}, inference of {count}"] = partial(inference_work, preset, size, count)
        named[f"{preset}, {size}x{size}, training step of {batch}"] = partial(training_work, preset, size, batch)
    if DEVICE.type == "cuda":  # the work of the GPU alone, as in a training by fit
        named |= {f"{name}, CUDA graph": partial(recorded, build) for name, build in list(named.items())}
    return named


def recorded(build: Callable[[], Work]) -> Work:
    """Record a piece of work as a CUDA graph, which replays it without the host."""
    work, stream = build(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def layer_work(layer: str, size: int, batch: int) -> Work:
    """Build a call of one layer, with 10 maps for a convolution and 20 for the others."""
    grid = GridLaplacian(size, size)
    backward = layer.endswith("with backward")
    if layer.startswith("convolution"):
        module, maps = SpectralConv(10, 20, 4).to(DEVICE), 10
    else:
        module, maps = DynamicPool(300) if layer == "pooling" else Statistics(12), 20
    signals = torch.rand(batch, maps, size**2, device=DEVICE, requires_grad=backward)

    def work() -> None:
        result = module(signals) if layer == "pooling" else module(signals, grid)
        if backward:
            result.sum().backward()

    return work


def inference_work(preset: str, size: int, count: int) -> Work:
    """Build the inference of some images."""
    net = TIGraNet(preset, num_classes=9).to(DEVICE).eval()
    images = torch.rand(count, 1, size, size, device=DEVICE)

    def work() -> None:
        with torch.inference_mode():
            net(images)

    return work


def training_work(preset: str, size: int, batch: int) -> Work:
    """Build a training step."""
    net = TIGraNet(preset, num_classes=9).to(DEVICE).train()
    images, labels = torch.rand(batch, 1, size, size, device=DEVICE), torch.arange(batch, device=DEVICE) % 9
    optimizer = torch.optim.Adam(net.parameters(), fused=True, capturable=DEVICE.type == "cuda")

    def work() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()

    return work


def seconds(work: Work, repeats: int) -> float:
    """Return the seconds of ``repeats`` calls, with all that they start on a GPU."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    """Answer the names of all work, then a time in milliseconds for each name that is read."""
    if DEVICE.type == "cuda":  # the same processor cores for all versions
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:4])
    named = builders()
    works: dict[str, tuple[Work, int]] = {}
    print(json.dumps(list(named)), flush=True)
    for line in sys.stdin:
        name = line.rstrip("\n")
        if name not in works:
            torch.manual_seed(0)
            work = named[name]()
            seconds(work, 2)  # compiles
            works = {name: (work, max(1, int(MINIMUM_SECONDS / seconds(work, 1))))}  # the one before it is freed
        work, repeats = works[name]
        print(json.dumps(1e3 * seconds(work, repeats) / repeats), flush=True)


if __name__ == "__main__":
    main()
