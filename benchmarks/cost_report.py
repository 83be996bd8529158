"""The page and the picture of :mod:`benchmarks.cost_by_size`."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cost_networks import BATCH, ONE_IMAGE, TRAINING, WORKS
from tigranet.choose_architecture import choose_preset

BASELINE = "resnet18"
LIMIT = "limit of the machine"
"""In the column of the network: a row with a property of the machine instead of a cost."""
LARGE = 224
"""Side length in pixels at which networks are compared with the baseline."""
RANGE = (64, 512)
"""Side lengths between which the growth of the cost per pixel is reported."""
MAX_TRAINING_RATIO, MAX_TRAINING_MIB, MAX_ONE_IMAGE_RATIO, MAX_GROWTH = 2.5, 100.0, 1.5, 0.2
"""What we aim at: times of the baseline in training, MiB per image there, times of the baseline for one image on a CPU,
and growth of the cost per pixel."""


class CostTable:
    """The rows of the CSV file by network, size, work and precision.

    Args:
        rows: The rows.
    """

    def __init__(self, rows: Iterable[dict[str, str]]) -> None:
        rows = list(rows)
        self.costs = {
            (row["network"], int(row["size"]), row["work"], row["precision"]): row
            for row in rows
            if row["network"] != LIMIT
        }
        self.limits = {row["work"]: float(row["ms"]) for row in rows if row["network"] == LIMIT}
        self.device = next((row["gpu"] or f"{row['threads']} threads of {row['cpu']}" for row in rows), "")
        self.on_gpu = any(row["gpu"] for row in rows)
        self.torch = next((row["torch"] for row in rows), "")

    def value(self, column: str, network: str, size: int, work: str, precision: str) -> float | None:
        """Return a number, or None if it was not measured."""
        text = self.costs.get((network, size, work, precision), {}).get(column)
        return float(text) if text else None

    def ratio(self, network: str, size: int, work: str, precision: str) -> float | None:
        """Return the time divided by that of the baseline."""
        own, other = (self.value("ms", name, size, work, precision) for name in (network, BASELINE))
        return own / other if own and other else None

    def growth(self, network: str, work: str, precision: str) -> float | None:
        """Return by which part the time per pixel grows from the smaller to the larger size of :data:`RANGE`."""
        small, large = (self.value("ms", network, size, work, precision) for size in RANGE)
        return large / small * (RANGE[0] / RANGE[1]) ** 2 - 1 if small and large else None

    def products_ms(self, network: str, size: int, work: str, precision: str) -> float | None:
        """Return the time of the matrix products of one image at the peak of the machine."""
        gflop = self.value("gflop", network, size, work, precision)
        peak = self.limits.get(f"matrix product in {precision}, GFLOP/s")
        return 1e3 * gflop / peak if gflop and peak else None

    def copy_ms(self, network: str, size: int, work: str, precision: str) -> float | None:
        """Return the time to write once and read once the memory that a step needs for one image."""
        mib, bandwidth = self.value("mib", network, size, work, precision), self.limits.get("copy, GB/s")
        return 1e3 * 2 * mib * 2**20 / (bandwidth * 1e9) if mib and bandwidth else None

    def names(self, position: int) -> list[Any]:
        """Return the different networks (0), sizes (1), works (2) or precisions (3), in the order of the rows."""
        return list(dict.fromkeys(key[position] for key in self.costs))


class Aim(NamedTuple):
    """A number that is compared with what we aim at."""

    text: str
    value: float
    limit: float

    def __str__(self) -> str:
        return f"{self.text}: {self.value:.2f} ({'reached' if self.value <= self.limit else 'missed'}: {self.limit:g})"


def aims(table: CostTable) -> Iterator[Aim]:
    """Yield the numbers that decide whether the default networks are fast enough."""
    default = choose_preset(1000, LARGE, gpu=table.on_gpu)
    for precision in table.names(3):
        if table.on_gpu:
            ratio = table.ratio(default, LARGE, TRAINING, precision)
            mib = table.value("mib", default, LARGE, TRAINING, precision)
            growth = table.growth(default, TRAINING, precision)
            title = f"{default}, training, {precision}"
            if ratio is not None:
                yield Aim(f"{title}, {LARGE} pixels, times of {BASELINE}", ratio, MAX_TRAINING_RATIO)
            if mib is not None:
                yield Aim(f"{title}, {LARGE} pixels, MiB per image", mib, MAX_TRAINING_MIB)
            if growth is not None:
                yield Aim(f"{title}, growth per pixel from {RANGE[0]} to {RANGE[1]} pixels", growth, MAX_GROWTH)
            continue
        for network in dict.fromkeys((default, choose_preset(1000, LARGE, gpu=True))):
            ratio = table.ratio(network, LARGE, ONE_IMAGE, precision)
            if ratio is not None:
                title = f"{network}, one image of {LARGE} pixels, times of {BASELINE}"
                yield Aim(title, ratio, MAX_ONE_IMAGE_RATIO)


def page(table: CostTable) -> str:
    """Return the tables as Markdown: milliseconds and MiB per image, ratios and limits."""
    lines = [f"# Cost by size: {table.device}, PyTorch {table.torch}", ""]
    lines += [f"- {name}: {value:,.0f}" for name, value in table.limits.items()]
    lines += ["", *(f"- {aim}" for aim in aims(table)), ""]
    lines += [
        "Each cell: milliseconds per image; MiB per image; times of the baseline. A part of a cell that is missing was "
        "not measured. In brackets: milliseconds that the matrix products take at the peak of the machine (group "
        "convolutions as products with all filters; our CPU kernels need a fifth to a ninth of them), and "
        "milliseconds to write and read once the memory of the step.",
        "",
    ]
    for work in WORKS:
        for precision in table.names(3):
            rows = [
                f"| {name} | "
                + " | ".join(_cell(table, name, size, work, precision) for size in sorted(table.names(1)))
                for name in table.names(0)
                if any(table.value("ms", name, size, work, precision) for size in table.names(1))
            ]
            if rows:
                sizes = [f"{size}x{size}" for size in sorted(table.names(1))]
                lines += [f"## {work.capitalize()}, {precision}", "", f"| network | {' | '.join(sizes)} |"]
                lines += ["| --- " * (len(sizes) + 1) + "|", *(f"{row} |" for row in rows), ""]
    return "\n".join(lines)


def _cell(table: CostTable, *key: Any) -> str:
    ms = table.value("ms", *key)
    if ms is None:
        return table.costs.get(key, {}).get("note", "").removeprefix("not measured: ")
    mib, ratio = table.value("mib", *key), table.ratio(*key)
    limits = [f"{limit:.2g}" if limit else "-" for limit in (table.products_ms(*key), table.copy_ms(*key))]
    parts = [f"{ms:.3g} ms", f"{mib:.3g} MiB" if mib is not None else "", f"{ratio:.2g} x" if ratio else ""]
    return f"{'; '.join(filter(None, parts))} ({', '.join(limits)})"


def draw(table: CostTable, path: Path) -> None:
    """Draw the time per image against the size, one panel per work, with the first precision of the table."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    precision = table.names(3)[0]
    figure, axes = plt.subplots(1, 3, figsize=(17, 5.5), layout="constrained", sharex=True)
    colors, markers = plt.get_cmap("tab10").colors, "os^D"
    for axis, column, work in zip(axes, ("ms", "mib", "ms"), (TRAINING, TRAINING, BATCH), strict=True):
        drawn = []
        for number, name in enumerate(table.names(0)):
            look = {"color": colors[number % len(colors)], "marker": markers[number // len(colors)]}
            values = [(size, table.value(column, name, size, work, precision)) for size in sorted(table.names(1))]
            points = [(size, value) for size, value in values if value]
            if points:
                style = "--" if name in (BASELINE, "small CNN", "ChebConv") else "-"
                axis.loglog(*zip(*points, strict=True), linestyle=style, label=name, markersize=4, **look)
                drawn += [value for _, value in points]
                limits = [(size, table.products_ms(name, size, work, precision)) for size, _ in points]
                if column == "ms" and all(limit for _, limit in limits):
                    axis.loglog(*zip(*limits, strict=True), ":", color=look["color"], linewidth=0.8, alpha=0.6)
        sizes = sorted(table.names(1))
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.set_xticks([], minor=True)
        if drawn:
            axis.set_ylim(min(drawn) / 2, 2 * max(drawn))
        unit = "time (ms)" if column == "ms" else "memory (MiB)"
        axis.set(xlabel="side length (pixels)", ylabel=f"{unit} per image", title=f"{work}, {precision}")
    figure.legend(*axes[-1].get_legend_handles_labels(), fontsize=8, loc="outside right center")
    figure.suptitle(f"{table.device}. Dotted: the matrix products alone at the peak of the machine")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def write_report(rows: Iterable[dict[str, str]], output: Path) -> str:
    """Write the page and the picture beside the CSV file.

    Args:
        rows: The rows of the CSV file.
        output: The path of the CSV file.

    Returns:
        The numbers that decide whether the default networks are fast enough, one per line.
    """
    table = CostTable(rows)
    output.with_suffix(".md").write_text(page(table))
    if table.costs:
        draw(table, output.with_suffix(".png"))
    return "\n".join(map(str, aims(table)))
