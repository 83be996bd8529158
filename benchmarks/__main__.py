"""``python -m benchmarks [--no-compile]``: all of them, into results/benchmarks-<device>.csv and .png."""

import csv
import platform
import sys
from dataclasses import astuple
from pathlib import Path

import torch

from benchmarks import ceilings, convolution, network, pooling, statistics
from benchmarks.timing import DEVICE, Row

RESULTS = Path(__file__).parent.parent / "results"


def main() -> None:
    device = torch.cuda.get_device_name() if DEVICE.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"PyTorch {torch.__version__}, {device}, Python {platform.python_version()}")
    limits = ceilings.measure()
    print(", ".join(f"{name} {value:.0f}" for name, value in limits.items()))
    rows = network.measure() + pooling.measure() + convolution.measure() + statistics.growth()
    rows += statistics.measure(compiled="--no-compile" not in sys.argv)
    name = RESULTS / f"benchmarks-{DEVICE.type}"
    with name.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*Row.header(), "device", "torch"])
        for row in rows:
            values = [f"{value:.4g}" if isinstance(value, float) else value for value in astuple(row)]
            writer.writerow([*values, device, torch.__version__])
        for limit, value in limits.items():
            writer.writerow([limit, "", "machine", f"{value:.4g}", "", "", "", device, torch.__version__])
    draw(rows, limits, device, name.with_suffix(".png"))


def draw(rows: list[Row], limits: dict[str, float], device: str, path: Path) -> None:
    """Left: time against the number of nodes. Right: how many times slower the others are."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for candidate in ("fused", "plain"):
        grown = [row for row in rows if row.work == "growth, with backward" and row.candidate == candidate]
        left.loglog([row.size**2 for row in grown], [row.median_ms for row in grown], "o-", label=candidate)
    floor = [(row.size**2, row.size**2 * 20 * 4 * 2 / limits["copy_gb_per_s"] / 1e6) for row in grown]
    left.loglog(*zip(*floor, strict=True), "k:", label="copy of the input")
    left.set(xlabel="nodes", ylabel="ms", title="statistics of 20 maps, order 12, forward + backward")
    left.legend()
    sizes = sorted({row.size for row in rows if row.work == "statistics"})
    names = [row.candidate for row in rows if row.work == "statistics" and row.size == sizes[0]]
    shown = [name for name in names if name not in ("fused", "copy of the input")]
    for offset, size in enumerate(sizes):
        found = {row.candidate: row.times_fused for row in rows if row.work == "statistics" and row.size == size}
        places = [index + 0.25 * (offset - 1) for index in range(len(shown))]
        right.bar(places, [found.get(name, 0) for name in shown], 0.25, label=f"{size} x {size}")
    right.set_xticks(range(len(shown)), shown, rotation=20, ha="right")
    right.set(yscale="log", ylabel="times slower than fused", title=f"statistics, forward, on {device}", ylim=(1, None))
    right.yaxis.set_major_formatter("{x:g}")
    right.yaxis.set_minor_formatter("")
    right.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
