"""Run all benchmarks and write results/benchmarks-<device>.csv and .png: ``python -m benchmarks [--no-compile]``."""

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks import ceilings, convolution, exported, languages, network, pooling, statistics
from benchmarks.timing import DEVICE, RESULTS, Row, device_name, write


def main() -> None:
    """Run all benchmarks."""
    print(f"PyTorch {torch.__version__}, {device_name()}, Python {platform.python_version()}")
    limits = ceilings.measure()
    print(", ".join(f"{name} {value:.0f}" for name, value in limits.items()))
    rows = write("benchmarks", _all_rows(limits, compiled="--no-compile" not in sys.argv))
    draw(rows, limits, device_name(), RESULTS / f"benchmarks-{DEVICE.type}.png")


def _all_rows(limits: dict[str, float], compiled: bool) -> Iterator[Row]:
    """Yield the rows one by one, so that finished rows are saved if a later benchmark fails."""
    for limit, value in limits.items():
        yield Row(limit, 0, "machine", value, None, None)
    yield from statistics.growth()
    yield from statistics.measure(compiled)
    for measure in (network.measure, convolution.measure, pooling.measure):
        yield from measure()
    if DEVICE.type == "cuda":
        yield from languages.measure()
    else:
        yield from exported.measure()


def draw(rows: list[Row], limits: dict[str, float], device: str, path: Path) -> None:
    """Draw the results of the statistical layer.

    The left panel shows the time against the number of nodes. The right panel shows how many times slower the other
    implementations are; on a GPU these times are taken inside a CUDA graph where possible.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for candidate in ("fused", "plain"):
        growth = [row for row in rows if row.work == "growth, with backward" and row.candidate == candidate]
        growth = [row for row in growth if row.median_ms is not None]
        left.loglog([row.size**2 for row in growth], [row.median_ms for row in growth], "o-", label=candidate)
    copy = [(row.size**2, row.size**2 * 20 * 4 * 2 / limits["copy_gb_per_s"] / 1e6) for row in growth]
    left.loglog(*zip(*copy, strict=True), "k:", label="copy of the input")
    left.set(
        xlabel="number of nodes", ylabel="time (ms)", title="statistics of 20 maps, order 12, forward and backward"
    )
    left.legend()
    statistics_rows = [row for row in rows if row.work == "statistics"]
    sizes = sorted({row.size for row in statistics_rows})
    names = [row.candidate for row in statistics_rows if row.size == sizes[0]]
    names = [name for name in names if name not in ("fused", "copy of the input")]
    for offset, size in enumerate(sizes):
        ratios = {
            row.candidate: row.times_fused or row.eager_times_fused for row in statistics_rows if row.size == size
        }
        positions = [index + 0.25 * (offset - 1) for index in range(len(names))]
        right.bar(positions, [ratios.get(name) or 0 for name in names], 0.25, label=f"{size} x {size} pixels")
    right.set_xticks(range(len(names)), names, rotation=20, ha="right")
    right.set(yscale="log", ylabel="time / time of fused", title=f"statistics, forward, on {device}", ylim=(1, None))
    right.yaxis.set_major_formatter("{x:g}")
    right.yaxis.set_minor_formatter("")
    right.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
