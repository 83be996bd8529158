"""Predict parts on this machine: in this process, or in several worker processes.

Each worker process reads, decodes and computes whole parts, so that all cores are used without waiting for one
another. A worker that dies is replaced, and its part is done again. Workers end when the process that started them
ends, however it ends.
"""

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from tigranet.devices import select_device
from tigranet.usable_cores import usable_cores
from tigranet.workflows.bulk_prediction.part_predictor import Job, PartAnswer, PartPredictor
from tigranet.workflows.bulk_prediction.parts import Part

MAX_ATTEMPTS = 4
"""Number of workers that may die with the same part before the run ends with an error."""

NumberedPart = tuple[int, Part]
"""The number of a part, and the part."""


def default_workers(device: str) -> int:
    """Return the number of worker processes that use this machine best.

    Args:
        device: Where to compute, see :func:`tigranet.devices.select_device`.

    Returns:
        One per core on the CPU, and one for a GPU.
    """
    return usable_cores() if select_device(device).type == "cpu" else 1


def predict_locally(job: Job, parts: Iterable[NumberedPart], workers: int) -> Iterator[PartAnswer]:
    """Predict parts on this machine.

    Args:
        job: What to predict with, and where to write the answers.
        parts: The parts. They are read one after the other.
        workers: Number of worker processes. With 1 this process does the work.

    Yields:
        What is recorded about each part, in the order in which they are finished.

    Raises:
        RuntimeError: If several workers die with the same part.
        OSError: If images cannot be reached, or if answers cannot be written.
    """
    if workers == 1:
        predictor = PartPredictor(job)
        for number, part in parts:
            yield predictor(number, part)
        return
    pool = _Pool(job, parts)
    try:
        for _ in range(workers):
            pool.start_worker()
        while pool.workers:
            yield from pool.finished()
    finally:
        pool.stop()


class _Worker:
    """A worker process, and the part that it has."""

    def __init__(self, job: Job, numbered_part: NumberedPart) -> None:
        context = multiprocessing.get_context("spawn")  # PyTorch's threads and CUDA do not survive a fork.
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, job), daemon=True)
        self.process.start()
        other.close()
        self.give(numbered_part)

    def give(self, numbered_part: NumberedPart) -> None:
        self.part = numbered_part
        with suppress(
            BrokenPipeError, ConnectionResetError
        ):  # A worker that has died is noticed when it is waited for.
            self.connection.send(numbered_part)

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.connection.close()


class _Pool:
    """Workers, and the parts that nobody has yet."""

    def __init__(self, job: Job, parts: Iterable[NumberedPart]) -> None:
        self.job = job
        self.workers: dict[Connection, _Worker] = {}
        self._parts = iter(parts)
        self._again: deque[NumberedPart] = deque()
        self._deaths: dict[int, int] = {}

    def start_worker(self) -> None:
        """Start a worker, if there is a part for it."""
        if (part := self._next_part()) is not None:
            worker = _Worker(self.job, part)
            self.workers[worker.connection] = worker

    def finished(self) -> Iterator[PartAnswer]:
        """Wait until at least one worker has finished its part or has died, and give it or its successor the next."""
        for connection in wait(list(self.workers)):
            assert isinstance(connection, Connection)
            worker = self.workers[connection]
            try:
                answer = connection.recv()
            except (EOFError, ConnectionResetError):
                self._replace(worker)
                continue
            if isinstance(answer, BaseException):
                raise answer
            yield answer
            if (part := self._next_part()) is None:
                del self.workers[connection]
                worker.stop()
            else:
                worker.give(part)

    def stop(self) -> None:
        """End all workers. Files that they are writing do not appear."""
        for worker in self.workers.values():
            worker.process.terminate()
        for worker in self.workers.values():
            worker.stop()

    def _next_part(self) -> NumberedPart | None:
        return self._again.popleft() if self._again else next(self._parts, None)

    def _replace(self, worker: _Worker) -> None:
        number = worker.part[0]
        del self.workers[worker.connection]
        worker.stop()
        self._deaths[number] = self._deaths.get(number, 0) + 1
        if self._deaths[number] == MAX_ATTEMPTS:
            raise RuntimeError(
                f"{MAX_ATTEMPTS} worker processes died while they predicted part {number}, the last one with exit code "
                f"{worker.process.exitcode}: there may be too little memory, use fewer --workers"
            )
        self._again.append(worker.part)
        self.start_worker()


def _work(connection: Connection, job: Job) -> None:
    """Predict the parts that arrive, until the other end of the connection is closed."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C stops the process that started this one, which stops this one.
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    predictor = PartPredictor(job)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            number, part = connection.recv()
            answer: Any
            try:
                answer = predictor(number, part)
            except Exception as error:
                answer = error
            _send(connection, answer)


def _send(connection: Connection, answer: Any) -> None:
    try:
        connection.send(answer)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception:  # Some errors cannot be pickled.
        connection.send(RuntimeError(f"{type(answer).__name__}: {answer}"))
