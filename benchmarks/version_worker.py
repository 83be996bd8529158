"""The process that :mod:`benchmarks.compare_versions` starts for each version: reads names of work, answers times.

It uses public names only, which all versions share.
"""

import json
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

from tigranet import DynamicPool, GridLaplacian, SpectralConv, Statistics, TIGraNet

DEVICE = torch.device(sys.argv[1])
MINIMUM_SECONDS = 0.02
"""A timing repeats short work until it has taken about this long."""


def works() -> dict[str, Callable[[], object]]:
    """Return all pieces of work by name."""
    torch.manual_seed(0)
    named: dict[str, Callable[[], object]] = {}
    for size in (26, 50, 128):
        _add_layers(named, size, batch=(500 if DEVICE.type == "cuda" else 20) * 26**2 // size**2 or 1)
    for preset, size, batch in (
        ("paper-small", 28, 50), ("paper", 26, 100), ("oriented-small", 28, 50), ("oriented", 28, 100),
        ("oriented-large", 28, 50), ("oriented-small", 64, 16),
    ):  # fmt: skip
        _add_network(named, preset, size, batch)
    return named


def _add_layers(named: dict[str, Callable[[], object]], size: int, batch: int) -> None:
    grid = GridLaplacian(size, size)
    y, z = torch.rand(batch, 10, size**2, device=DEVICE), torch.rand(batch, 20, size**2, device=DEVICE)
    conv, pool, statistics = SpectralConv(10, 20, 4).to(DEVICE), DynamicPool(300), Statistics(12)
    z_learned = z.clone().requires_grad_()

    def statistics_step() -> None:
        statistics(z_learned, grid).sum().backward()

    def convolution_step() -> None:
        conv(y, grid).sum().backward()

    named[f"statistics {size}"] = lambda: statistics(z, grid)
    named[f"statistics {size}, with backward"] = statistics_step
    named[f"convolution {size}, with backward"] = convolution_step
    named[f"pooling {size}"] = lambda: pool(z)


def _add_network(named: dict[str, Callable[[], object]], preset: str, size: int, batch: int) -> None:
    evaluated = TIGraNet(preset, num_classes=9).to(DEVICE).eval()
    trained = TIGraNet(preset, num_classes=9).to(DEVICE).train()
    images, labels = torch.rand(batch, 1, size, size, device=DEVICE), torch.arange(batch, device=DEVICE) % 9
    optimizer = torch.optim.Adam(trained.parameters())

    def predict(count: int) -> None:
        with torch.inference_mode():
            evaluated(images[:count])

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(trained(images), labels).backward()
        optimizer.step()

    named[f"{preset} {size}, one image"] = lambda: predict(1)
    named[f"{preset} {size}, {batch} images"] = lambda: predict(batch)
    named[f"{preset} {size}, training step of {batch}"] = step


def seconds(work: Callable[[], object], repeats: int) -> float:
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
    named = works()
    repeats: dict[str, int] = {}
    print(json.dumps(list(named)), flush=True)
    for line in sys.stdin:
        name = line.rstrip("\n")
        if name not in repeats:
            seconds(named[name], 2)  # compiles
            repeats[name] = max(1, int(MINIMUM_SECONDS / seconds(named[name], 1)))
        print(json.dumps(1e3 * seconds(named[name], repeats[name]) / repeats[name]), flush=True)


if __name__ == "__main__":
    main()
