"""A CSV file that a measurement appends rows to, and that it continues when it is started again."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.pinned_workers import run_pinned
from tigranet.evaluation.provenance import machine, versions

Job = tuple[Any, ...]
Run = Callable[..., dict[str, Any]]


def provenance() -> dict[str, Any]:
    """Return the columns that describe software and machine."""
    return {name: versions()[name] for name in ("tigranet", "torch")} | machine()


def measure_rows(
    path: Path, keys: Sequence[str], jobs: Iterable[Job], run: Run, workers: int = 1, cores: int | None = None
) -> None:
    """Run all jobs that have no row yet, and append one row after each.

    Args:
        path: Path of the CSV file.
        keys: Names of the first columns, which identify a job.
        jobs: The values of these columns for each job, which are the arguments of ``run``.
        run: Measures one job and returns the further columns. It must be picklable if there are several workers. The
            columns of :func:`provenance` are added, unless it returns them itself.
        workers: Number of jobs that run at the same time, each in a process of its own.
        cores: Number of cores that each of these processes has for itself, see
            :func:`benchmarks.pinned_workers.run_pinned`. By default they share everything.

    Raises:
        ValueError: If the file is of another measurement, or of other columns.
    """
    rows = list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []
    header = list(rows[0]) if rows else []
    if rows and header[: len(keys)] != list(keys):
        _reject(path, keys, header)
    finished = {tuple(row[key] for key in keys) for row in rows}
    missing = [job for job in jobs if tuple(map(str, job)) not in finished]
    for number, (job, columns) in enumerate(_results(missing, partial(_measure, run), workers, cores), start=1):
        row = dict(zip(keys, job, strict=True)) | columns
        print(f"{number}/{len(missing)} {row}", flush=True)
        if header and list(row) != header:
            _reject(path, list(row), header)
        with path.open("a", newline="") as file:
            table = csv.DictWriter(file, list(row), lineterminator="\n")
            if not header:
                table.writeheader()
                header = list(row)
            table.writerow(row)


def _reject(path: Path, expected: Sequence[str], actual: Sequence[str]) -> NoReturn:
    raise ValueError(
        f"expected the columns {', '.join(expected)} in '{path}', got {', '.join(actual)}: name another file, or "
        "repeat the options that it was measured with"
    )


def _measure(run: Run, *job: Any) -> dict[str, Any]:
    """Return the columns of a job, with the machine as the process that measures sees it."""
    columns = run(*job)
    return columns | {name: value for name, value in provenance().items() if name not in columns}


def _results(jobs: list[Job], run: Run, workers: int, cores: int | None) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Yield each job with its columns, as soon as they are measured."""
    if cores is not None:
        yield from run_pinned(jobs, run, workers, cores)
        return
    if workers == 1:
        yield from ((job, run(*job)) for job in jobs)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        futures = {pool.submit(run, *job): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], future.result()
