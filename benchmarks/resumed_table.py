"""A CSV file that a measurement appends rows to, and that it continues when it is started again."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tigranet.evaluation.provenance import machine, versions

Job = tuple[Any, ...]
Run = Callable[..., dict[str, Any]]


def provenance() -> dict[str, Any]:
    """Return the columns that describe software and machine."""
    return {name: versions()[name] for name in ("tigranet", "torch")} | machine()


def measure_rows(path: Path, keys: Sequence[str], jobs: Iterable[Job], run: Run, workers: int = 1) -> None:
    """Run all jobs that have no row yet, and append one row after each.

    Args:
        path: Path of the CSV file.
        keys: Names of the first columns, which identify a job.
        jobs: The values of these columns for each job, which are the arguments of ``run``.
        run: Measures one job and returns the further columns. It must be picklable if there are several workers.
        workers: Number of jobs that run at the same time, each in a process of its own.
    """
    rows = list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []
    finished = {tuple(row[key] for key in keys) for row in rows}
    missing = [job for job in jobs if tuple(map(str, job)) not in finished]
    for number, (job, columns) in enumerate(_results(missing, run, workers), start=1):
        row = dict(zip(keys, job, strict=True)) | columns | provenance()
        print(f"{number}/{len(missing)} {row}", flush=True)
        with path.open("a", newline="") as file:
            table = csv.DictWriter(file, list(row), lineterminator="\n")
            if not rows:
                table.writeheader()
            table.writerow(row)
            rows.append(row)


def _results(jobs: list[Job], run: Run, workers: int) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Yield each job with its columns, as soon as they are measured."""
    if workers == 1:
        yield from ((job, run(*job)) for job in jobs)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        futures = {pool.submit(run, *job): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], future.result()
