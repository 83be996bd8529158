"""A CSV file that a measurement appends rows to, and that it continues when it is started again."""

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tigranet.evaluation.provenance import machine, versions


def provenance() -> dict[str, Any]:
    """Return the columns that describe software and machine."""
    return {name: versions()[name] for name in ("tigranet", "torch")} | machine()


def measure_rows(
    path: Path, keys: Sequence[str], jobs: Iterable[tuple[Any, ...]], run: Callable[..., dict[str, Any]]
) -> None:
    """Run all jobs that have no row yet, and append one row after each.

    Args:
        path: Path of the CSV file.
        keys: Names of the first columns, which identify a job.
        jobs: The values of these columns for each job, which are the arguments of ``run``.
        run: Measures one job and returns the further columns.
    """
    rows = list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []
    finished = {tuple(row[key] for key in keys) for row in rows}
    for job in jobs:
        if tuple(map(str, job)) in finished:
            continue
        row = dict(zip(keys, job, strict=True)) | run(*job) | provenance()
        print(row, flush=True)
        with path.open("a", newline="") as file:
            table = csv.DictWriter(file, list(row), lineterminator="\n")
            if not rows:
                table.writeheader()
            table.writerow(row)
            rows.append(row)
