"""``python -m benchmarks [--no-compile]``: all of them, into results/benchmarks-<device>.csv and .png."""

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks import ceilings, convolution, languages, network, pooling, statistics
from benchmarks.timing import DEVICE, RESULTS, Row, device_name, write


def main() -> None:
    print(f"PyTorch {torch.__version__}, {device_name()}, Python {platform.python_version()}")
    limits = ceilings.measure()
    print(", ".join(f"{name} {value:.0f}" for name, value in limits.items()))
    rows = write("benchmarks", _all(limits, compiled="--no-compile" not in sys.argv))
    draw(rows, limits, device_name(), RESULTS / f"benchmarks-{DEVICE.type}.png")


def _all(limits: dict[str, float], compiled: bool) -> Iterator[Row]:
    """Row by row, so that none is lost if the rest fails."""
    for limit, value in limits.items():
        yield Row(limit, 0, "machine", value, None, None)
    yield from statistics.growth()
    yield from statistics.measure(compiled)
    for measure in (network.measure, convolution.measure, pooling.measure):
        yield from measure()
    if DEVICE.type == "cuda":
        yield from languages.measure()


def draw(rows: list[Row], limits: dict[str, float], device: str, path: Path) -> None:
    """Left: time against the number of nodes. Right: how many times slower the others are, on a GPU inside a CUDA
    graph where that can be."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for candidate in ("fused", "plain"):
        grown = [row for row in rows if row.work == "growth, with backward" and row.candidate == candidate]
        grown = [row for row in grown if row.median_ms is not None]
        left.loglog([row.size**2 for row in grown], [row.median_ms for row in grown], "o-", label=candidate)
    floor = [(row.size**2, row.size**2 * 20 * 4 * 2 / limits["copy_gb_per_s"] / 1e6) for row in grown]
    left.loglog(*zip(*floor, strict=True), "k:", label="copy of the input")
    left.set(xlabel="nodes", ylabel="ms", title="statistics of 20 maps, order 12, forward + backward")
    left.legend()
    measured = [row for row in rows if row.work == "statistics"]
    sizes = sorted({row.size for row in measured})
    shown = [row.candidate for row in measured if row.size == sizes[0]]
    shown = [name for name in shown if name not in ("fused", "copy of the input")]
    for offset, size in enumerate(sizes):
        found = {row.candidate: row.times_fused or row.eager_times_fused for row in measured if row.size == size}
        places = [index + 0.25 * (offset - 1) for index in range(len(shown))]
        right.bar(places, [found.get(name) or 0 for name in shown], 0.25, label=f"{size} x {size}")
    right.set_xticks(range(len(shown)), shown, rotation=20, ha="right")
    right.set(yscale="log", ylabel="times slower than fused", title=f"statistics, forward, on {device}", ylim=(1, None))
    right.yaxis.set_major_formatter("{x:g}")
    right.yaxis.set_minor_formatter("")
    right.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
