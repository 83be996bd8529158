"""Simulate 10^9 images on 1 to 1,000 GPUs: time, money and bottleneck.

    python -m benchmarks.scale_simulation

It reads the measured constants (``scale-constants.json``, ``scale.csv``, ``cost-cpu.csv`` and ``cost-cuda.csv`` in
``results/``), writes ``scale-simulation.csv`` and ``.png``, and puts its tables into ``docs/scale.md``. The model and
its assumptions are in :mod:`benchmarks.scale_model`. Options such as ``--dollars-per-gpu-hour`` replace assumptions.
"""

import argparse
import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.scale_model import ClientCosts, Cluster, Estimate, Provider, Workload, estimate, simulate
from benchmarks.throughput import LIMIT, LOCAL, RAY, RAY_BATCH

RESULTS = Path("results")
PAGE = Path("docs/scale.md")
IMAGES = 1e9
GPUS = (1, 3, 10, 30, 100, 300, 1000)
TABLE_GPUS = (1, 10, 100, 1000)
NETWORKS = {"plankton": ("pyramid-small", "64"), "photographs": ("pyramid", "224")}
"""For each kind of image, the network, and the side length in pixels that it reads."""
PRECISION = "tf32"
STAGES = {
    "compute": "GPUs",
    "cores": "cores",
    "network": "network",
    "storage": "bandwidth of the store",
    "requests": "requests to the store",
    "driver": "driver",
}
"""What a bottleneck is called in tables."""


class Measurements(NamedTuple):
    """What was measured."""

    workloads: dict[str, Workload]
    costs: ClientCosts
    digits: Workload
    """The images of ``scale.csv``, on this machine."""
    cores: int
    """Number of cores of this machine."""
    rates: dict[str, float]
    """Images per second of the engines on this machine."""


def read_measurements(folder: Path) -> Measurements:
    """Read the constants of the model.

    Args:
        folder: The folder ``results``.

    Returns:
        The constants. The share of the limit is that of the local engine, with one worker per core.
    """
    constants = json.loads((folder / "scale-constants.json").read_text())
    costs = {name: _rows(folder / f"cost-{name}.csv") for name in ("cpu", "cuda")}
    scale = _rows(folder / "scale.csv")
    cores = int(scale[0]["threads"])
    rows = [row for row in scale if int(row["batch_size"]) == RAY_BATCH and int(row["workers"]) == cores]
    rates = {row["engine"]: float(row["images_per_second"]) for row in rows if row["engine"] in (LOCAL, RAY)}
    limits = [row for row in rows if row["engine"] == LIMIT]
    digits = Workload(
        "digits",
        limits[0]["network"],
        0.0,
        mean(float(row["decode_microseconds"]) for row in limits) / 1e6,
        0.0,
        mean(float(row["compute_microseconds"]) for row in limits) / 1e6,
    )
    share = next(float(row["share_of_limit"]) for row in rows if row["engine"] == LOCAL)
    workloads = {
        kind: Workload(
            kind,
            network,
            constants[kind]["image_bytes"],
            constants[kind]["decode_seconds"],
            _cost(costs["cuda"], network, side, PRECISION, "ms"),
            _cost(costs["cpu"], network, side, "float32", "processor_ms"),
            constants["answer_bytes"],
        )
        for kind, (network, side) in NETWORKS.items()
    }
    client = ClientCosts(
        constants["request_seconds"],
        constants["transfer_seconds_per_byte"],
        constants["driver_seconds_per_part"],
        min(1.0, share),
    )
    return Measurements(workloads, client, digits, cores, rates)


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def _cost(rows: list[dict[str, str]], network: str, side: str, precision: str, column: str) -> float:
    key = (network, side, "inference", precision)
    return next(
        float(row[column]) / 1e3 for row in rows if (row["network"], row["size"], row["work"], row["precision"]) == key
    )


def one_machine(measured: Measurements) -> dict[str, float]:
    """Compare the model with a measurement on this machine: the rate of the engine Ray, which sets no constant.

    Returns:
        The rates by the model and as measured, and their ratio.
    """
    costs = replace(measured.costs, request_seconds=0.0, transfer_seconds_per_byte=0.0)  # a local disk
    cores = measured.cores
    digits = replace(measured.digits, image_bytes=1.0)
    predicted = estimate(1e6, digits, costs, Cluster(0, Provider(start_seconds=0.0), cores=cores)).images_per_second
    actual = measured.rates.get(RAY, measured.rates[LOCAL])
    return {"model": predicted, "measured": actual, "ratio": predicted / actual}


def simulate_all(measured: Measurements, provider: Provider, images: float) -> list[dict[str, Any]]:
    """Simulate all kinds of images and numbers of GPUs.

    Args:
        measured: The constants.
        provider: The assumptions.
        images: Number of images.

    Returns:
        One row for each simulation.
    """
    rows = []
    for workload in measured.workloads.values():
        for is_sharded in (True, False):
            for gpus in GPUS:
                cluster = Cluster(gpus, provider, is_sharded=is_sharded)
                rows.append(_row(workload, cluster, simulate(images, workload, measured.costs, cluster)))
        for gpus in GPUS:
            cluster = Cluster(0, provider, cores=gpus * provider.cores_per_gpu)
            rows.append(_row(workload, cluster, estimate(images, workload, measured.costs, cluster)))
    return rows


def _row(workload: Workload, cluster: Cluster, result: Estimate) -> dict[str, Any]:
    return {
        "images": workload.name,
        "network": workload.network,
        "stored_as": "shards" if cluster.is_sharded else "files",
        "gpus": cluster.gpus,
        "cores": cluster.total_cores,
        "images_per_second": round(result.images_per_second),
        "hours": round(result.seconds / 3600, 3),
        "dollars": round(result.dollars, 2),
        "bottleneck": result.bottleneck,
    }


def duration(hours: float) -> str:
    """Return a duration in the unit that suits it.

    Example:
        >>> duration(0.5), duration(30), duration(500)
        ('30 min', '30 h', '21 d')
    """
    if hours < 2:
        return f"{60 * hours:.0f} min"
    return f"{hours:.0f} h" if hours < 72 else f"{hours / 24:,.0f} d"


def result_table(rows: list[dict[str, Any]]) -> str:
    """Return the table of time, money and bottleneck at powers of ten."""
    lines = [
        "| images | stored as | GPUs | cores | images per second | time | dollars | limited by |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    shown = [row for row in rows if int(row["gpus"]) in TABLE_GPUS or int(row["gpus"]) == 0]
    for row in shown:
        if not int(row["gpus"]) and int(row["cores"]) // 24 not in TABLE_GPUS:
            continue
        cells = [
            f"{row['images']}, `{row['network']}`",
            row["stored_as"],
            f"{int(row['gpus']):,}",
            f"{int(row['cores']):,}",
            f"{int(row['images_per_second']):,}",
            duration(float(row["hours"])),
            f"{float(row['dollars']):,.0f}",
            STAGES[row["bottleneck"]],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def constants_table(measured: Measurements) -> str:
    """Return the table of measured constants."""
    costs = measured.costs
    lines = ["| constant | plankton | photographs |", "| --- | --- | --- |"]
    both = [measured.workloads[kind] for kind in NETWORKS]
    for name, values in {
        "network": [f"`{workload.network}`" for workload in both],
        "size of a file": [f"{workload.image_bytes / 1e3:.1f} KB" for workload in both],
        "decoding, on a core": [f"{1e3 * workload.decode_seconds:.2f} ms" for workload in both],
        "network, on an H200": [f"{1e3 * workload.gpu_seconds:.4f} ms" for workload in both],
        "network, on a core": [f"{1e3 * workload.cpu_seconds:.2f} ms" for workload in both],
        "request to a store, on a core": [f"{1e3 * costs.request_seconds:.2f} ms"] * 2,
        "receiving from a store, on a core": [f"{1e9 * costs.transfer_seconds_per_byte:.2f} ms per MB"] * 2,
        "driver, for a part": [f"{1e3 * costs.driver_seconds_per_part:.2f} ms"] * 2,
        "share of the limit": [f"{costs.share_of_limit:.0%}"] * 2,
    }.items():
        lines.append(f"| {name} | {' | '.join(values)} |")
    return "\n".join(lines)


def check_text(measured: Measurements) -> str:
    """Return the sentence that compares the model with this machine."""
    point = one_machine(measured)
    return (
        f"On {measured.cores} cores, for images of 28x28 pixels and `{measured.digits.network}`, the model says "
        f"{point['model']:,.0f} images per second;\nRay with {measured.cores} workers was measured at "
        f"{point['measured']:,.0f} ([results](../results/scale.md)): the model gives {point['ratio']:.2f} times it."
    )


def fill_page(page: str, parts: dict[str, str]) -> str:
    """Replace what stands between the markers of each part of a page.

    Args:
        page: Text of the page, with lines ``<!-- NAME -->`` and ``<!-- end NAME -->``.
        parts: New text by name.

    Returns:
        The page.

    Raises:
        ValueError: If a marker is missing.
    """
    for name, text in parts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end {name} -->)", re.DOTALL)
        if not pattern.search(page):
            raise ValueError(f"expected the markers '<!-- {name} -->' and '<!-- end {name} -->' in the page")
        page = pattern.sub(lambda match, text=text: f"{match[1]}\n{text}\n{match[2]}", page)
    return page


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw time and money against the number of GPUs. The shape of a point says what limits."""
    from matplotlib import pyplot as plt

    shapes = dict(zip(STAGES, "osvD^P", strict=True))
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    series = [(kind, stored) for kind in NETWORKS for stored in ("shards", "files")]
    for color, (kind, stored) in zip(("C0", "C1", "C2", "C3"), series, strict=True):
        own = [row for row in rows if (row["images"], row["stored_as"]) == (kind, stored) and int(row["gpus"])]
        gpus = [int(row["gpus"]) for row in own]
        for axis, column in zip(axes, ("hours", "dollars"), strict=True):
            values = [float(row[column]) for row in own]
            axis.plot(gpus, values, color=color, label=f"{kind}, {stored}" if column == "hours" else None)
            for x, y, row in zip(gpus, values, own, strict=True):
                axis.plot(x, y, shapes[row["bottleneck"]], color=color)
    used = dict.fromkeys(row["bottleneck"] for row in rows if int(row["gpus"]))
    for stage in used:
        axes[1].plot([], [], shapes[stage], color="0.3", label=f"limited by: {STAGES[stage]}")
    for axis, title in zip(axes, ("hours", "dollars"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="GPUs", ylabel=title)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=9)
    figure.suptitle("10^9 images: simulated time and price")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=float, default=IMAGES)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    provider = Provider()
    parser.add_argument("--dollars-per-gpu-hour", type=float, default=provider.gpu_dollars_per_hour)
    parser.add_argument("--dollars-per-core-hour", type=float, default=provider.core_dollars_per_hour)
    parser.add_argument("--cores-per-gpu", type=int, default=provider.cores_per_gpu)
    parser.add_argument("--store-gigabytes-per-second", type=float, default=provider.store_bytes_per_second / 1e9)
    parser.add_argument("--store-requests-per-second", type=float, default=provider.store_requests_per_second)
    arguments = parser.parse_args()
    provider = replace(
        provider,
        gpu_dollars_per_hour=arguments.dollars_per_gpu_hour,
        core_dollars_per_hour=arguments.dollars_per_core_hour,
        cores_per_gpu=arguments.cores_per_gpu,
        store_bytes_per_second=arguments.store_gigabytes_per_second * 1e9,
        store_requests_per_second=arguments.store_requests_per_second,
    )
    measured = read_measurements(arguments.results)
    rows = simulate_all(measured, provider, arguments.images)
    with (arguments.results / "scale-simulation.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, arguments.results / "scale-simulation.png")
    parts = {"constants": constants_table(measured), "check": check_text(measured), "results": result_table(rows)}
    arguments.page.write_text(fill_page(arguments.page.read_text(), parts))
    print("\n\n".join(parts.values()))


if __name__ == "__main__":
    main()
