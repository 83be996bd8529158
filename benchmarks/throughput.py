"""Throughput of bulk predictions against workers and batch size, beside two yardsticks.

    .venv-engines/bin/python -m benchmarks.throughput --output results/scale.csv

It measures the local engine and Ray beside the limit of the cores (:mod:`benchmarks.core_limit`), which is measured
before and after each run, and beside a plain loop over a DataLoader with ResNet-18 and with the same network. All of
them read the same Parquet files with PNG files of 28x28 pixels. Rates are those of the steady state: the start of the
workers and the end, when some workers have no part left, are left out. A page (.md) is written beside the CSV file. It
takes about five minutes, during which nothing else should run.
"""

import argparse
import csv
import tempfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.bulk_images import SIDE, create_images
from benchmarks.core_limit import CoreLimit, core_limit
from benchmarks.loader_loop import loader_rate
from benchmarks.resumed_table import provenance
from tigranet import TIGraNet
from tigranet.baselines.resnet import ResNet
from tigranet.usable_cores import usable_cores
from tigranet.workflows.bulk_prediction import predict_source

MODEL = "oriented-mnist-012"
BATCH_SIZES = (16, 64, 256)
LOADER_BATCH = RAY_BATCH = 64
PART_SIZE = 512
TARGET = 0.9
"""The share of the limit that we aim at."""
LIMIT, LOADER, LOCAL, RAY = "limit of the cores", "DataLoader loop", "local", "ray"

Row = dict[str, Any]


def steady_rate(times: Iterable[float], workers: int, part_size: int) -> float:
    """Return the images per second while all workers have parts.

    Args:
        times: When each part was finished, in seconds.
        workers: Number of workers.
        part_size: Number of images of each part.

    Returns:
        The rate between the moment when each worker has finished a part and the moment when the first has none left.
    """
    ordered = sorted(times)
    first, last = workers - 1, len(ordered) - workers
    if last <= first:
        raise ValueError(f"expected at least {2 * workers} parts for {workers} workers, got {len(ordered)}")
    return part_size * (last - first) / (ordered[last] - ordered[first])


def measure(images: int, loader_images: int, limit_seconds: float, batch_sizes: Iterable[int]) -> Iterator[Row]:
    """Measure all engines, numbers of workers and batch sizes.

    Args:
        images: Number of images of a run with one worker per core.
        loader_images: Number of images of a loop over a DataLoader.
        limit_seconds: Duration of a measurement of the limit.
        batch_sizes: The batch sizes.

    Yields:
        One row for each measurement.
    """
    cores = usable_cores()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, few = create_images(folder / "images", images), create_images(folder / "few", loader_images)
        for network in (ResNet("resnet18", 3, SIDE), TIGraNet.from_pretrained(MODEL)):
            label = "ResNet-18" if isinstance(network, ResNet) else MODEL
            for workers in (0, cores):
                rate = loader_rate(network, few, workers, LOADER_BATCH)
                yield _row(LOADER, workers, LOADER_BATCH, label, rate)
        for workers, processes in _layouts(cores):
            with core_limit(MODEL, source, processes) as limit:
                for batch_size in batch_sizes:
                    yield from _runs(folder, source, limit, workers, batch_size, limit_seconds)


def _layouts(cores: int) -> list[tuple[int, int]]:
    """Return numbers of workers, and of cores that they may use: a single local worker uses all cores with threads."""
    return [(1, cores), (cores, cores)] if cores > 1 else [(1, 1)]


def _runs(
    folder: Path, source: Path, limit: CoreLimit, workers: int, batch_size: int, limit_seconds: float
) -> Iterator[Row]:
    engines = [LOCAL]
    if batch_size == RAY_BATCH and workers == usable_cores() and find_spec("ray"):
        engines.append(RAY)
    for engine in engines:
        before = limit.measure(batch_size, limit_seconds)
        output = folder / f"{engine}-{workers}-{batch_size}"
        predict_source(
            MODEL, source, output, engine=engine, workers=workers, batch_size=batch_size, part_size=PART_SIZE
        )
        times = [path.stat().st_mtime for path in output.glob("part-*.parquet")]
        rate = steady_rate(times, workers, PART_SIZE)
        limits = (before, limit.measure(batch_size, limit_seconds))
        values = [mean(column) for column in zip(*limits, strict=True)]
        yield _row(LIMIT, usable_cores(), batch_size, MODEL, *values)
        yield _row(engine, workers, batch_size, MODEL, rate) | {"share_of_limit": round(rate / values[0], 3)}


def _row(
    engine: str,
    workers: int,
    batch_size: int,
    network: str,
    rate: float,
    decode_seconds: float | None = None,
    compute_seconds: float | None = None,
) -> Row:
    return {
        "engine": engine,
        "workers": workers,
        "batch_size": batch_size,
        "network": network,
        "images_per_second": round(rate, 1),
        "share_of_limit": "",
        "decode_microseconds": "" if decode_seconds is None else round(decode_seconds * 1e6, 1),
        "compute_microseconds": "" if compute_seconds is None else round(compute_seconds * 1e6, 1),
        **provenance(),
    }


def write_page(rows: list[dict[str, str]], path: Path) -> None:
    """Write the table and what it shows.

    Args:
        rows: The rows of the CSV file.
        path: Path of the page.
    """
    loops = [
        float(row["images_per_second"]) for row in rows if (row["engine"], row["network"]) == (LOADER, "ResNet-18")
    ]
    cpu, cores = rows[0]["cpu"], rows[0]["threads"]
    lines = [
        "# Throughput of bulk predictions",
        "",
        "`.venv-engines/bin/python -m benchmarks.throughput --output results/scale.csv` writes this page. "
        f"{cores} cores of {cpu}, PyTorch {rows[0]['torch']}.",
        "",
        f"Images of {SIDE}x{SIDE} pixels as PNG files in Parquet files; images per second in the steady state. The",
        "limit of the cores is the rate of processes that only decode and compute, one per core. A single local worker",
        "uses all cores with threads.",
        "",
        "| engine | workers | batch size | network | images per second | share of limit | times the ResNet-18 loop |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        rate = float(row["images_per_second"])
        share = f"{float(row['share_of_limit']):.0%}" if row["share_of_limit"] else ""
        cells = [row["engine"], row["workers"], row["batch_size"], row["network"], f"{rate:,.0f}", share]
        lines.append(f"| {' | '.join(cells)} | {rate / max(loops):.1f} |")
    best = {
        engine: max((float(row["share_of_limit"]) for row in rows if row["engine"] == engine), default=None)
        for engine in (LOCAL, RAY)
    }
    for engine, share in best.items():
        if share is not None:
            verdict = "reached" if share >= TARGET else "missed"
            lines += ["", f"Best share of the limit, engine {engine}: {share:.0%} ({verdict}: {TARGET:.0%})."]
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=20_480)
    parser.add_argument("--loader-images", type=int, default=1000)
    parser.add_argument("--limit-seconds", type=float, default=3.0)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=list(BATCH_SIZES))
    parser.add_argument("--output", type=Path, default=Path("results/scale.csv"))
    arguments = parser.parse_args()
    rows = []
    for row in measure(arguments.images, arguments.loader_images, arguments.limit_seconds, arguments.batch_sizes):
        print(" ".join(f"{name}={value}" for name, value in list(row.items())[:8]), flush=True)
        rows.append(row)
    with arguments.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write_page(list(csv.DictReader(arguments.output.read_text().splitlines())), arguments.output.with_suffix(".md"))


if __name__ == "__main__":
    main()
