"""``python -m benchmarks.matrix_products``: the speed of matrix products in training on a CPU, and page faults.

    python -m benchmarks.matrix_products --output results/matrix-products.csv

Each network is trained with ``fit`` and the default recipe for 500 random images, in new processes without settings for
threads or memory. A table (.md) is written beside the CSV file. Rows that the file already contains are not measured
again.

* ``in_step``: GFLOP/s of all matrix products of the network together in a training step, forward and backward: the sum
  of their operations divided by the sum of their times, median over the profiled steps. ``with_augmentation`` has the
  products of the augmentation too, which have few operations.
* ``alone``: the same products, with the same shapes and strides, each timed alone.
* ``peak``: the fastest of several products of large square float32 matrices. The process measures it between the steps.
* Page faults per image while the library keeps freed memory for the next batch, as it does by default, and while glibc
  is left as it is. The first epoch, in which the memory of the process grows, is counted separately.

Run it on a machine that has nothing else to do: ``other_cores`` is the mean number of cores that were busy with other
processes meanwhile.
"""

import argparse
import csv
import os
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.resumed_table import measure_rows
from benchmarks.step_worker import IMAGES, KEPT, RETURNED
from benchmarks.user_process import run_without_settings
from tigranet.choose_architecture import choose_preset

NETWORKS = (
    *((choose_preset(IMAGES, size, gpu=False), size) for size in (28, 32, 64, 224)),
    *((preset, size) for preset in ("oriented-small", "oriented") for size in (34, 64)),
)
"""Presets and side lengths: the defaults on a CPU, and the oriented networks."""
MIN_SHARE, MIN_FACTOR = 0.6, 20
"""What we aim at: the share of the peak in a training step, and how many times fewer page faults there are."""


class Usage(NamedTuple):
    """Seconds since some moment: of the clock, of all busy cores together, and of this process and its children."""

    clock: float
    busy: float
    own: float

    @classmethod
    def now(cls) -> "Usage":
        """Read the seconds from Linux."""
        user, nice, system, _, _, *interrupts_and_stolen = map(int, Path("/proc/stat").read_text().split()[1:9])
        ticks = user + nice + system + sum(interrupts_and_stolen)
        times = os.times()
        own = times.user + times.system + times.children_user + times.children_system
        return cls(times.elapsed, ticks / os.sysconf("SC_CLK_TCK"), own)

    def other_cores(self, later: "Usage") -> float:
        """Return the mean number of cores that other processes, or other virtual machines, used until later."""
        return max(0.0, (later.busy - self.busy) - (later.own - self.own)) / (later.clock - self.clock)


def measure(preset: str, size: int, rounds: int) -> dict[str, Any]:
    """Measure the products and the page faults of one network, and print the products that lose most time.

    Args:
        preset: The architecture.
        size: Side length of the images in pixels.
        rounds: Number of trainings of which page faults are counted, for each kind of memory.

    Returns:
        The columns of the table.
    """
    before = Usage.now()
    worker = ["-m", "benchmarks.step_worker"]
    products = run_without_settings([*worker, "products", preset, str(size)])
    print("\n".join(products["listed"]), flush=True)
    counts: dict[str, list[tuple[float, float]]] = {KEPT: [], RETURNED: []}
    for _ in range(rounds):
        for memory, pairs in counts.items():
            pairs.append(run_without_settings([*worker, "faults", preset, str(size), memory]))
    other_cores = {"other_cores": round(before.other_cores(Usage.now()), 2)}
    return fault_columns(counts) | other_cores | products["columns"]


def fault_columns(counts: dict[str, list[tuple[float, float]]]) -> dict[str, float]:
    """Summarise page faults per image.

    Args:
        counts: Those of the first epoch and of the later ones, for each training, by the kind of memory.

    Returns:
        Medians over the trainings, and the factor by which kept memory has fewer of them after the first epoch.
    """
    first, later = ({memory: median(pair[n] for pair in pairs) for memory, pairs in counts.items()} for n in (0, 1))
    return {
        **{f"{memory}_faults_first_epoch": round(count, 1) for memory, count in first.items()},
        **{f"{memory}_faults": round(count, 2) for memory, count in later.items()},
        "faults_factor": round(later[RETURNED] / max(later[KEPT], 1 / IMAGES), 1),
    }


def page(rows: list[dict[str, str]]) -> str:
    """Return the table as Markdown.

    Args:
        rows: The rows of the CSV file.

    Returns:
        The text of the page.
    """
    machines = {f"{row['threads']} threads of {row['cpu']}, PyTorch {row['torch']}" for row in rows}
    lines = [
        f"# Matrix products in training: {'; '.join(sorted(machines))}",
        "",
        "`python -m benchmarks.matrix_products --output results/matrix-products.csv`. Products: GFLOP/s of all matrix "
        "products of the network in a training step, as a share of the peak of one large product; of the same products "
        "each timed alone; and with those of the augmentation. Page faults per training image after the first epoch, "
        "with memory kept between batches and without.",
        "",
        "| network | pixels | peak, GFLOP/s | in the step | alone | with augmentation | share of the step's time | "
        "page faults: kept, not kept | factor | cores of other processes |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        shares = ("in_step_share_of_peak", "alone_share_of_peak", "with_augmentation_share_of_peak", "share_of_step")
        cells = [
            row["preset"],
            row["size"],
            row["peak_gflop_per_s"],
            *(f"{100 * float(row[name]):.0f} %" for name in shares),
        ]
        cells += [f"{row['kept_faults']}, {row['returned_faults']}", row["faults_factor"], row["other_cores"]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"- {line}" for line in aims(rows)), ""])


def aims(rows: list[dict[str, str]]) -> list[str]:
    """Say whether the products are fast enough and the page faults few enough, and which network is the worst."""
    lines = []
    for name, column, limit in (
        ("share of the peak in the step", "in_step_share_of_peak", MIN_SHARE),
        ("factor of the page faults", "faults_factor", MIN_FACTOR),
    ):
        worst = min(rows, key=lambda row: float(row[column]))
        reached = sum(float(row[column]) >= limit for row in rows)
        lines.append(
            f"{name}, at least {limit}: reached by {reached} of {len(rows)}; least {worst[column]} "
            f"({worst['preset']} at {worst['size']} pixels)"
        )
    return lines


def main() -> None:
    """Measure all networks, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="CSV file. Rows that it has are not measured again.")
    parser.add_argument("--presets", nargs="*", help="Measure these only.")
    parser.add_argument("--rounds", type=int, default=1, help="Number of trainings of which page faults are counted.")
    options = parser.parse_args()
    jobs = [network for network in NETWORKS if not options.presets or network[0] in options.presets]
    measure_rows(options.output, ("preset", "size"), jobs, partial(measure, rounds=options.rounds))
    rows = list(csv.DictReader(options.output.read_text().splitlines()))
    options.output.with_suffix(".md").write_text(page(rows))
    print("\n".join(aims(rows)))


if __name__ == "__main__":
    main()
