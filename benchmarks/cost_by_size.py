"""``python -m benchmarks.cost_by_size``: time and memory per image of networks, by the size of the images.

    python -m benchmarks.cost_by_size --device cuda --output results/cost-cuda.csv

It measures training steps, inference in batches, and inference of one image, and writes a row after each measurement,
then a page (.md) and a picture (.png) beside the CSV file. The most important rows come first. When ``--seconds`` have
passed, it stops and says how many rows are missing; the same command continues. What would take longer than
``--step-seconds`` per image, judged by a smaller size, is not measured; its row says so.
"""

import argparse
import csv
import gc
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.cost_measurement import MIB, machine_limits, measure_cost
from benchmarks.cost_networks import ONE_IMAGE, WORKS, CostCandidate, candidates, find_candidate
from benchmarks.cost_report import LIMIT, write_report
from benchmarks.resumed_table import provenance

SIZES = (28, 64, 96, 128, 224, 512)
FIRST_SIZES = (64, 224, 512)
FIRST_NETWORKS = ("resnet18", "pyramid-224", "pyramid-small", "pyramid-small-224")
"""What decides whether a network is fast enough is measured first."""
PRECISIONS = {"cpu": ("float32",), "cuda": ("tf32", "bf16", "float32")}
BATCH_PIXELS = {"cpu": 16 * 64**2, "cuda": 64 * 224**2}
"""Number of pixels of a batch. The cost per pixel is compared at the same number of pixels."""
MEASUREMENT_SECONDS = {"cpu": 1.5, "cuda": 0.15}
"""Approximate duration of the timed steps of a row."""
EXPECTED = "expected"
"""End of the note of a row that is not measured because of what a smaller size costs."""
MEMORY_SHARE = 0.5
"""The share of the free memory that a step may need."""


class CostJob(NamedTuple):
    """What identifies a row."""

    network: str
    size: int
    work: str
    precision: str


def all_jobs(networks: list[str], sizes: list[int], precisions: tuple[str, ...], device: torch.device) -> list[CostJob]:
    """Return all rows to measure, the important ones first, and sizes in ascending order.

    On a GPU, float32 without TF32 is measured for the important networks only. One image has only the first precision.
    """
    jobs = [
        CostJob(network, size, work, precision)
        for precision in precisions
        for work in WORKS
        for network in networks
        for size in sorted(sizes)
        if find_candidate(network).applies(work, precision, device)
        and (precision != "float32" or device.type == "cpu" or network in FIRST_NETWORKS)
        and (work != ONE_IMAGE or precision == precisions[0])
    ]

    def rank(job: CostJob) -> tuple[bool, bool]:
        return job.network not in FIRST_NETWORKS or job.size not in FIRST_SIZES, job.work == ONE_IMAGE

    return sorted(jobs, key=rank)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows that were measured before."""
    return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []


def job_of(row: dict[str, Any]) -> CostJob:
    """Return what identifies a row."""
    return CostJob(row["network"], int(row["size"] or 0), row["work"], row["precision"])


def predicted(job: CostJob, rows: list[dict[str, Any]]) -> tuple[float, float] | None:
    """Predict seconds and bytes of one image from the largest smaller size, in proportion to the pixels.

    Returns:
        Both numbers, infinity where the smaller size was not measured because it would have cost too much, or None if
        no smaller size has a row.
    """
    smaller = [
        row
        for row in rows
        if job_of(row)._replace(size=job.size) == job
        and int(row["size"]) < job.size
        and (row["ms"] or row["note"].endswith(EXPECTED))
    ]
    if not smaller:
        return None
    row = max(smaller, key=lambda row: int(row["size"]))
    if not row["ms"]:
        return float("inf"), float("inf")
    growth = (job.size / int(row["size"])) ** 2
    return growth * float(row["ms"]) / 1e3, growth * float(row["mib"] or 0) * MIB


def free_memory(device: torch.device) -> float:
    """Return the free memory of a device in bytes."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return float("inf")
    return next(int(line.split()[1]) * 1024.0 for line in lines if line.startswith("MemAvailable:"))


def measure_job(
    job: CostJob, candidate: CostCandidate, rows: list[dict[str, Any]], device: torch.device, step_seconds: float
) -> dict[str, Any]:
    """Measure one row, or say in its column ``note`` why it is not measured."""
    empty = dict.fromkeys(("batch", "ms", "processor_ms", "mib", "gflop", "timing"), "")
    if candidate.needs and find_spec(candidate.needs) is None:
        return empty | {"note": f"not measured: {candidate.needs} is not installed"}
    memory = MEMORY_SHARE * free_memory(device)
    if (expected := predicted(job, rows)) is not None:
        seconds, size = expected
        if seconds > step_seconds:
            return empty | {"note": f"not measured: more than {step_seconds:g} s per image {EXPECTED}"}
        if size > memory:
            return empty | {"note": f"not measured: {size / 2**30:.1f} GiB per image {EXPECTED}"}
    try:
        cost = measure_cost(
            candidate,
            job.size,
            job.work,
            job.precision,
            device,
            BATCH_PIXELS[device.type],
            MEASUREMENT_SECONDS[device.type],
            memory,
        )
    except RuntimeError as error:  # also where memory is not sufficient; the other rows are still worth measuring
        return empty | {"note": f"not measured: {str(error).strip().splitlines()[0]}"}
    finally:
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    columns = {name: f"{x:.5g}" if isinstance(x, float) else x for name, x in cost._asdict().items() if x is not None}
    return empty | columns | {"note": ""}


def measure_rows(
    jobs: list[CostJob], rows: list[dict[str, Any]], device: torch.device, step_seconds: float, deadline: float
) -> Iterator[dict[str, Any]]:
    """Measure the jobs that have no row yet, until the deadline, and yield their rows."""
    finished = {job_of(row) for row in rows}
    for job in jobs:
        if job not in finished:
            if time.monotonic() > deadline:
                return
            row = job._asdict() | measure_job(job, find_candidate(job.network), rows, device, step_seconds)
            rows.append(row)
            yield row


def limit_rows(device: torch.device, precisions: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Measure the limits of the machine. Their value is in the column ``ms``, their unit in ``work``."""
    for name, value in machine_limits(device, precisions).items():
        yield {"network": LIMIT, "size": 0, "work": name, "precision": "", "ms": f"{value:.5g}"}


def run(
    output: Path,
    device: torch.device,
    networks: list[str],
    sizes: list[int],
    precisions: tuple[str, ...],
    step_seconds: float = 3.0,
    seconds: float = 1800.0,
) -> int:
    """Measure all rows that ``output`` does not contain, and write them, the page and the picture.

    Args:
        output: The CSV file.
        device: Where to compute.
        networks: Names, or layers, see :func:`~benchmarks.cost_networks.find_candidate`.
        sizes: Side lengths of the images.
        precisions: Precisions of matrix products.
        step_seconds: Longest time of one image that is measured.
        seconds: Time after which no measurement is started.

    Returns:
        The number of rows that are still missing.
    """
    deadline = time.monotonic() + seconds
    rows: list[dict[str, Any]] = list(read_rows(output))
    jobs = all_jobs(networks, sizes, precisions, device)
    columns = [*CostJob._fields, "batch", "ms", "processor_ms", "mib", "gflop", "timing", "note", *provenance()]
    with output.open("a", newline="") as file:
        table = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        if not rows:
            table.writeheader()
            limits = list(limit_rows(device, precisions))
            table.writerows(row | provenance() for row in limits)
            rows += limits
        for row in measure_rows(jobs, rows, device, step_seconds, deadline):
            table.writerow(row | provenance())
            file.flush()
            cost = f"{row['ms']} ms, {row['mib'] or '?'} MiB per image" if row["ms"] else row["note"]
            print(f"{row['network']:28} {row['size']:4} {row['work']:24} {row['precision']:8} {cost}", flush=True)
    print(write_report(read_rows(output), output))
    return len(set(jobs) - {job_of(row) for row in rows})


def main() -> None:
    """Measure what the output file does not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--output", type=Path, required=True, help="The CSV file.")
    parser.add_argument("--networks", nargs="+", default=list(candidates()), help="Names, or layers.")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS["cuda"], help="By default all of the device.")
    parser.add_argument("--step-seconds", type=float, default=3.0, help="Longest time of one image that is measured.")
    parser.add_argument("--seconds", type=float, default=1800.0, help="Start no measurement after this time.")
    options = parser.parse_args()
    missing = run(
        options.output,
        torch.device(options.device),
        options.networks,
        options.sizes,
        tuple(options.precisions or PRECISIONS[options.device]),
        options.step_seconds,
        options.seconds,
    )
    if missing:
        print(f"{missing} rows are missing: run the same command again to measure them")


if __name__ == "__main__":
    main()
