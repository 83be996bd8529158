"""Worker processes that each have some processor cores for themselves, so that several timed jobs run side by side."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables with the number of threads of the libraries that we compute with."""


def run_pinned(
    jobs: list[tuple[Any, ...]], run: Callable[..., Any], workers: int, cores: int
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Run jobs in processes that each have their own cores, as many threads, and no GPU.

    Cores and threads are set before a process starts, because PyTorch and OpenMP read them when they are loaded.

    Args:
        jobs: Arguments of ``run``, one tuple for each job. They start in this order.
        run: The function. It must be picklable.
        workers: Number of processes.
        cores: Number of cores of each process.

    Yields:
        Each job with its result, as soon as it is finished.

    Raises:
        ValueError: If this process may not use that many cores.
        Exception: The first exception that ``run`` raises. No other job starts after it.
    """
    available = sorted(os.sched_getaffinity(0))
    if workers * cores > len(available):
        raise ValueError(
            f"expected at least {workers * cores} cores for {workers} workers of {cores} cores, got {len(available)}: "
            f"use at most {len(available) // cores} workers"
        )
    waiting: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
    finished: SimpleQueue[tuple[tuple[Any, ...], Any, BaseException | None]] = SimpleQueue()
    for job in jobs:
        waiting.put(job)

    def serve(own_cores: set[int]) -> None:
        os.sched_setaffinity(0, own_cores)  # of this thread; the process that it starts inherits them
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            while True:
                try:
                    job = waiting.get_nowait()
                except Empty:
                    return
                try:
                    finished.put((job, process.submit(run, *job).result(), None))
                except BaseException as error:
                    finished.put((job, None, error))

    with _environment(dict.fromkeys(THREAD_VARIABLES, str(cores)) | {"CUDA_VISIBLE_DEVICES": ""}):
        threads = [
            Thread(target=serve, args=({*available[number * cores : (number + 1) * cores]},))
            for number in range(min(workers, len(jobs)))
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in jobs:
                job, result, error = finished.get()
                if error is not None:
                    raise error
                yield job, result
        finally:
            while not waiting.empty():
                waiting.get()
            for thread in threads:
                thread.join()


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables within the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
