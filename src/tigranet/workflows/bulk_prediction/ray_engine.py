"""Predict parts on a Ray cluster. Each part is a task, which Ray repeats if its worker or its machine dies.

The process that calls this plans and records. It sends the parts, which are references to images, and receives numbers
of images. Models, images and answers are read and written by the workers, so that their paths must be valid on all
machines. Without the environment variable ``RAY_ADDRESS``, a cluster on this machine is started.
"""

import logging
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import torch

from tigranet.workflows.bulk_prediction.local_engine import MAX_ATTEMPTS, NumberedPart, usable_cores
from tigranet.workflows.bulk_prediction.part_predictor import Job, PartAnswer, PartPredictor
from tigranet.workflows.bulk_prediction.parts import Part

OBJECT_STORE_BYTES = 80 * 2**20
"""Memory for the objects of a local cluster. Only parts of the plan are stored there."""
WAITING_TASKS = 2
"""Number of tasks per worker that Ray knows of, so that no worker waits for this process."""


def predict_with_ray(job: Job, parts: Iterable[NumberedPart], workers: int | None) -> Iterator[PartAnswer]:
    """Predict parts on a Ray cluster.

    Args:
        job: What to predict with, and where to write the answers.
        parts: The parts. They are read one after the other.
        workers: Number of tasks that run at the same time. None uses all cores of the cluster.

    Yields:
        What is recorded about each part, in the order in which they are finished.

    Raises:
        ModuleNotFoundError: If Ray is not installed.
        RuntimeError: If several workers die with the same part.
        OSError: If images cannot be reached, or if answers cannot be written.
    """
    try:
        import ray
    except ModuleNotFoundError:
        raise ModuleNotFoundError("the engine 'ray' needs Ray: pip install 'tigranet[ray]'") from None
    is_started_here = not ray.is_initialized()
    if is_started_here:
        _start(ray, workers)
    try:
        yield from _run(ray, job, iter(parts), workers)
    finally:
        if is_started_here:
            ray.shutdown()


def _start(ray: Any, workers: int | None) -> None:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # the behaviour of coming versions
    if "RAY_ADDRESS" in os.environ:
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
        return
    ray.init(
        "local",  # not a cluster that 'ray start' has left on this machine, which may be somebody else's
        num_cpus=workers or usable_cores(),
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=OBJECT_STORE_BYTES,
    )


def _run(ray: Any, job: Job, parts: Iterator[NumberedPart], workers: int | None) -> Iterator[PartAnswer]:
    resources = ray.cluster_resources()
    uses_gpus = job.device != "cpu" and resources.get("GPU", 0) > 0
    places = int(resources["GPU" if uses_gpus else "CPU"])
    running = max(1, places if workers is None else min(workers, places))
    task = ray.remote(_predict_part).options(num_cpus=1, num_gpus=int(uses_gpus), max_retries=MAX_ATTEMPTS - 1)
    limit = running * WAITING_TASKS if running == places else running
    tasks: dict[Any, int] = {}
    is_open = True
    while tasks or is_open:
        while is_open and len(tasks) < limit:
            numbered_part = next(parts, None)
            if numbered_part is None:
                is_open = False
            else:
                tasks[task.remote(job, *numbered_part)] = numbered_part[0]
        if tasks:
            (finished, *_), _ = ray.wait(list(tasks), num_returns=1)
            number = tasks.pop(finished)
            yield _answer(ray, finished, number)


def _answer(ray: Any, finished: Any, number: int) -> PartAnswer:
    try:
        return ray.get(finished)
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, Exception) else RuntimeError(str(error)) from None
    except ray.exceptions.RayError as error:
        raise RuntimeError(f"Ray could not predict part {number} in {MAX_ATTEMPTS} attempts: {error}") from None


def _predict_part(job: Job, number: int, part: Part) -> PartAnswer:
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    return _predictor(job)(number, part)


@lru_cache(maxsize=1)
def _predictor(job: Job) -> PartPredictor:
    """Return the predictor of this worker process, which keeps its network from task to task."""
    return PartPredictor(job)
