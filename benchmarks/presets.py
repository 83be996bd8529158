"""Compare all presets, with the recipes that users get by default, by accuracy on validation images.

    python -m benchmarks.presets --data-dir data/ --workers 12 --seeds 0 1 2 --output results/presets.csv

Rows that the output file already contains are not measured again. The table is written next to it, as a ``.md`` file,
with the time that each training would take on two CPU cores: the processor time per image and pixel of
``results/cost-cpu.csv`` times the number of images and epochs. No test image is used, except that steel has so few
images that those of training and validation are drawn from all of them.

The networks are trained in bf16 on a GPU, because it takes half the time; ``tigranet train`` uses TF32 by default for
networks without group convolutions. ``--networks`` also takes layers, and ``init=`` with a trained network:

    python -m benchmarks.presets --data-dir data/ --networks "pyramid-medium init=starts/pyramid-medium-photographs" \
        --output medium.csv
"""

import argparse
import csv
import itertools
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.preset_search import START_SET, run
from benchmarks.resumed_table import measure_rows
from benchmarks.validation_sets import SETS
from tigranet.architecture import PRESETS
from tigranet.choose_architecture import CPU_EPOCHS, choose_preset, epochs_share
from tigranet.fine_tuning import DEFAULT_STARTS, start_name
from tigranet.workflows.larger_network import EXTRA_MINUTES, GOOD_ACCURACY

KEYS = ("data", "images", "network", "seed")
ALL_IMAGES = 10**9
"""Number of training images that stands for all of them."""
CELLS = (
    *itertools.product(("digits", "eth80", "photographs", "plankton"), (50, 300, 1_000)),
    *itertools.product(("steel",), (50, 300)),
    ("plankton-8", 320),
    *itertools.product(("digits", "photographs", "plankton"), (5_000,)),
    *itertools.product(("eth80", "digits", "photographs", "plankton"), (ALL_IMAGES,)),
)
"""Data sets and numbers of training images, the shorter trainings first."""
STARTED = tuple(f"{preset} init={start}" for preset, start in DEFAULT_STARTS.items() if not preset.endswith("224"))
"""Presets that start from a network of the package."""
HALF = f"effort={CPU_EPOCHS}"
"""Option of a network that is trained for as many epochs as an accurate network on a CPU."""
ACCURATE_ON_CPU = tuple(f"{network} {HALF}" for network in ("pyramid-large", *STARTED) if "pyramid-large" in network)
"""The accurate network as a CPU trains it, from random weights and from its start."""
NETWORKS = (*(preset for preset in PRESETS if not preset.endswith("224")), *STARTED, *ACCURATE_ON_CPU)
"""All presets for images of up to 64 pixels."""
SIDES = {
    "digits": 28,
    "eth80": 50,
    "eth80-colour": 50,
    "photographs": 32,
    "plankton": 64,
    "plankton-8": 64,
    "steel": 64,
}
"""Side length of the images in pixels."""
COST_SIDE = 64
"""Side length of the images whose cost was measured; the cost of others is proportional to their pixels."""
CPU_CORES = 2
TOLERANCE = 1.0
"""Difference to the best preset that the default may have, in points."""

Row = dict[str, str]


def _mean_accuracy(row: Row) -> float:
    """Return the mean of the accuracies on images as they are and rotated."""
    return (float(row["as they are"]) + float(row["rotated"])) / 2


def _cpu_minutes(row: Row, cost: dict[str, float]) -> float:
    """Return the minutes of a training on two cores, if they share the work evenly."""
    pixels = (SIDES[row["data"]] / COST_SIDE) ** 2
    steps_images = int(row["training images"]) * int(row["epochs"])
    return cost[row["network"].split()[0]] * pixels * steps_images / CPU_CORES / 60_000


def default_network(data: str, images: int, gpu: bool) -> str:
    """Return the first network that ``tigranet train`` trains: the default preset, from its default start."""
    preset = choose_preset(images, SIDES[data], gpu)
    start = start_name(preset, images) if data != START_SET else None
    return preset if start is None else f"{preset} init={start}"


def accurate_on_cpu(data: str, images: int) -> str:
    """Return the accurate network as a CPU trains it."""
    network = default_network(data, images, gpu=True)
    from_random = "init=" not in network
    return network if epochs_share(images, SIDES[data], True, False, from_random) == 1 else f"{network} {HALF}"


def _below_the_best(by_network: dict[str, list[Row]], default: str) -> float:
    """Return the lowest difference between the default and another network, on the seeds that both have.

    A seed draws the images, so networks of other seeds are measured on other images.
    """
    accuracies = {name: {run["seed"]: _mean_accuracy(run) for run in runs} for name, runs in by_network.items()}
    own = accuracies[default]
    return min(
        fmean(own[seed] - others[seed] for seed in own.keys() & others.keys())
        for others in accuracies.values()
        if own.keys() & others.keys()
    )


def _cell_line(rows: Sequence[Row], cost: dict[str, float], networks: Sequence[str]) -> str:
    """Return the line of the table for one data set and number of training images."""
    by_network: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_network[row["network"]].append(row)
    count = int(rows[0]["training images"])
    means = {network: fmean(map(_mean_accuracy, runs)) for network, runs in by_network.items()}
    best = max(means.values())

    def entry(network: str) -> str:
        runs = by_network[network]
        if not runs:
            return "-"
        upright, rotated = (fmean(float(run[column]) for run in runs) for column in ("as they are", "rotated"))
        text = f"{upright:.1f} / {rotated:.1f}"
        minutes = f", {_cpu_minutes(runs[0], cost):.1f} min" if network.split()[0] in cost else ""
        return f"{f'**{text}**' if means[network] == best else text}{minutes}"

    def distance(gpu: bool) -> str:
        network = default_network(rows[0]["data"], count, gpu)
        if not gpu and network in means:
            accurate = accurate_on_cpu(rows[0]["data"], count)
            is_trained = accurate in means and _cpu_minutes(by_network[accurate][0], cost) <= EXTRA_MINUTES
            if is_trained and means[network] < GOOD_ACCURACY:
                network = accurate
        return f"`{network}` {_below_the_best(by_network, network):+.1f}" if network in means else "-"

    seeds = len({row["seed"] for row in rows})
    cells = (rows[0]["data"], f"{count:,}", str(seeds), *map(entry, networks), distance(True), distance(False))
    return f"| {' | '.join(cells)} |"


def render(rows: Sequence[Row], cost: dict[str, float]) -> str:
    """Return the table in Markdown.

    Args:
        rows: The measured rows.
        cost: Processor time of one training image of 64x64 pixels in milliseconds, by preset.

    Returns:
        The page.
    """
    rows = [row for row in rows if (row["data"], int(row["images"])) in CELLS]
    measured = {row["network"] for row in rows}
    has_only_presets = measured <= set(NETWORKS)
    networks = NETWORKS if has_only_presets else sorted(measured)
    names = (
        "data",
        "images",
        "seeds",
        *(f"`{network}`" for network in networks),
        "default on a GPU",
        "default on a CPU",
    )
    lines = [
        f"# {'All presets' if has_only_presets else 'Networks'} with their default recipes",
        "",
        "Accuracy on up to 1,000 validation images, as they are / rotated, in per cent, mean over the seeds, and",
        "minutes of training on two CPU cores. Bold: the best mean of both accuracies. The last columns show by how",
        "many points the default is below the best network, on the seeds that both have; the aim is at most",
        f"{TOLERANCE:.1f}. The option 'init' names the network of the package that a training starts from, where that",
        f"is the default; it was trained on photographs. '{HALF}' has a share of the epochs, as on a CPU. There, the",
        f"accurate network is trained after the fast one if that takes {EXTRA_MINUTES:g} minutes or less, and the fast",
        f"one is right on less than {GOOD_ACCURACY:g} % of the images.",
        "",
        f"| {' | '.join(names)} |",
        f"| {' | '.join('---' for _ in names)} |",
    ]
    for cell in CELLS:
        chosen = [row for row in rows if (row["data"], int(row["images"])) == cell]
        lines += [_cell_line(chosen, cost, networks)] if chosen else []
    return "\n".join(lines) + "\n"


def read_cost(path: Path) -> dict[str, float]:
    """Return the processor time of one training image of 64x64 pixels in milliseconds, by network.

    Args:
        path: A file that ``benchmarks.cost_by_size --device cpu`` has written.

    Returns:
        The times of the networks that were measured.
    """
    rows = csv.DictReader(path.read_text().splitlines())
    measured = (row for row in rows if (row["size"], row["work"]) == (str(COST_SIDE), "training"))
    return {row["network"]: float(row["processor_ms"]) for row in measured if row["processor_ms"]}


def main() -> None:
    """Measure all rows that the output file does not contain yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), help="Presets, or layers.")
    parser.add_argument("--data", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--min-images", type=int, default=0)
    parser.add_argument("--max-images", type=int, default=ALL_IMAGES, help="all of them by default")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cost", type=Path, default=Path("results/cost-cpu.csv"))
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--render-only", action="store_true")
    arguments = parser.parse_args()
    jobs: list[tuple[Any, ...]] = [
        (name, images, network, seed)
        for seed, (name, images), network in itertools.product(arguments.seeds, CELLS, arguments.networks)
        if not ("init=" in network and name == START_SET)
        and name in arguments.data
        and arguments.min_images <= images <= arguments.max_images
    ]
    if not arguments.render_only:
        measure = partial(run, arguments.data_dir, precision="bf16")
        measure_rows(arguments.output, KEYS, jobs, measure, arguments.workers)
    rows = list(csv.DictReader(arguments.output.read_text().splitlines()))
    arguments.output.with_suffix(".md").write_text(render(rows, read_cost(arguments.cost)))


if __name__ == "__main__":
    main()
