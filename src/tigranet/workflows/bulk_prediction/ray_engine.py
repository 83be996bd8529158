"""Predict parts on a Ray cluster. Each part is a task, which Ray repeats if its worker or its machine dies.

The process that calls this plans and records. It sends the parts, which are references to images, and receives numbers
of images. Models, images and answers are read and written by the workers, so that their paths must be valid on all
machines. Without the environment variable ``RAY_ADDRESS``, a cluster on this machine is started.
"""

import logging
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import floor
from typing import Any, NamedTuple

import torch

from tigranet.usable_cores import usable_cores
from tigranet.workflows.bulk_prediction.local_engine import MAX_ATTEMPTS, NumberedPart
from tigranet.workflows.bulk_prediction.part_predictor import Job, PartAnswer, PartPredictor
from tigranet.workflows.bulk_prediction.parts import Part

OBJECT_STORE_BYTES = 80 * 2**20
"""Memory for the objects of a local cluster. Only parts of the plan are stored there."""
GPU_DIGITS = 10_000
"""Ray rounds parts of a GPU to this part of one."""
WAITING_TASKS = 2
"""Number of tasks per worker that Ray knows of, so that no worker waits for this process."""


def predict_with_ray(job: Job, parts: Iterable[NumberedPart], workers: int | None) -> Iterator[PartAnswer]:
    """Predict parts on a Ray cluster.

    Args:
        job: What to predict with, and where to write the answers.
        parts: The parts. They are read one after the other.
        workers: Number of tasks that run at the same time. None uses one per GPU of the cluster, or one per core if
            there are none.

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


class TaskLayout(NamedTuple):
    """How tasks share a cluster."""

    running: int
    """Number of tasks that run at the same time."""
    gpus_per_task: float
    """The part of a GPU that each task takes, or 1 or 0."""
    is_full: bool
    """Whether no further task would find a place, so that tasks can wait in Ray's queue."""


def task_layout(resources: dict[str, float], device: str, workers: int | None) -> TaskLayout:
    """Divide the cores and GPUs of a cluster among tasks.

    Args:
        resources: Number of cores and GPUs, as ``ray.cluster_resources()`` gives them.
        device: Where to compute. Only ``cpu`` leaves GPUs unused.
        workers: Number of tasks that run at the same time. None uses one per GPU, or one per core.

    Returns:
        The layout. More tasks than GPUs share them: small images take longer to decode on a core than to compute.

    Example:
        >>> task_layout({"CPU": 16.0, "GPU": 2.0}, "auto", 8)
        TaskLayout(running=8, gpus_per_task=0.25, is_full=True)
    """
    cores, gpus = int(resources["CPU"]), int(resources.get("GPU", 0)) if device != "cpu" else 0
    running = max(1, min(workers or gpus or cores, cores))
    if gpus == 0:
        return TaskLayout(running, 0, running == cores)
    tasks_per_gpu = -(-running // gpus)
    share = 1 if tasks_per_gpu == 1 else floor(GPU_DIGITS / tasks_per_gpu) / GPU_DIGITS
    return TaskLayout(running, share, running in (cores, gpus * tasks_per_gpu))


def _run(ray: Any, job: Job, parts: Iterator[NumberedPart], workers: int | None) -> Iterator[PartAnswer]:
    layout = task_layout(ray.cluster_resources(), job.device, workers)
    task = ray.remote(_predict_part).options(num_cpus=1, num_gpus=layout.gpus_per_task, max_retries=MAX_ATTEMPTS - 1)
    limit = layout.running * WAITING_TASKS if layout.is_full else layout.running
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
