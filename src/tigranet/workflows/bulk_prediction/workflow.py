"""Predict any number of images in parts, with workers, so that the same call continues after a kill."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Literal

from rich.console import Console

from tigranet.choices import InferencePrecision
from tigranet.evaluation.file_predictions import BATCH_SIZE
from tigranet.evaluation.parquet_rows import parquet_schema
from tigranet.model_folder import CALIBRATION, CONFIG, UNKNOWN_DETECTOR, WEIGHTS
from tigranet.usable_cores import usable_cores
from tigranet.workflows.bulk_prediction.answer_folder import AnswerFolder
from tigranet.workflows.bulk_prediction.local_engine import (
    NumberedPart,
    default_workers,
    predict_locally,
)
from tigranet.workflows.bulk_prediction.manifest import MANIFEST, finished_parts, write_manifest
from tigranet.workflows.bulk_prediction.part_predictor import AnswerOptions, Job, PartAnswer, load_model
from tigranet.workflows.bulk_prediction.plan import PLAN, Identity, Plan, make_plan, read_plan
from tigranet.workflows.bulk_prediction.progress import BulkProgress
from tigranet.workflows.bulk_prediction.source import absolute_sources
from tigranet.workflows.model_calibration import model_folder
from tigranet.workflows.unknown_detection import AUTO

Engine = Literal["local", "ray"]
"""What runs the workers."""
PART_SIZE = 4096
"""Number of images in a part, unless the user says otherwise: some seconds of work for a core."""


@dataclass(frozen=True)
class BulkPrediction:
    """What was predicted, and where the answers are."""

    folder: str
    """Absolute path or URL of the folder with the answers."""
    images: int
    """Number of rows in all files: images with an answer or with a reason why there is none."""
    unreadable: int
    """Number of images without an answer."""
    parts: int
    """Number of Parquet files."""
    resumed_parts: int
    """Number of files that an earlier call had written."""
    predicted_images: int
    """Number of rows that this call has written."""
    seconds: float
    """Duration of this call."""


def predict_source(
    model: str | Path,
    source: str | Path | Iterable[str | Path],
    output: str | Path,
    *,
    engine: Engine = "local",
    workers: int | None = None,
    part_size: int = PART_SIZE,
    batch_size: int = BATCH_SIZE,
    reject: float = 0.0,
    coverage: float | None = None,
    top: int = 0,
    probabilities: bool = False,
    unknown: str | float = AUTO,
    device: str = "auto",
    precision: InferencePrecision = "32",
    console: Console | None = None,
) -> BulkPrediction:
    """Predict the classes of any number of images, and write the answers to a folder of Parquet files.

    The images are divided into parts, and the plan is stored in the folder. Each part becomes one file, which is
    written completely or not at all. After a kill, the same call continues with the parts that are missing, so that
    each image has exactly one row. ``_manifest.json`` is written last. An image that cannot be read is a row without
    a label, and with the reason in the column ``error``.

    Worker processes import the main module of a program again. A script that calls this function with several local
    workers therefore does so below ``if __name__ == "__main__":``.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        source: The images, see :func:`~tigranet.workflows.bulk_prediction.source.find_parts`: folders, patterns, lists,
            Parquet files, tar files, or URLs of them.
        output: The folder of the answers, as a path or a URL.
        engine: ``local`` for processes on this machine, or ``ray`` for a Ray cluster.
        workers: Number of workers. None uses one per core, or one per GPU.
        part_size: Number of images in a part. A run that is continued keeps the parts that it has.
        batch_size: Largest batch size.
        reject: Below this probability the prediction is 'unknown'.
        coverage: The probability with which a label set contains the true label, or None for no label sets.
        top: Number of most probable classes to list for each image.
        probabilities: Whether to give the probabilities of all classes.
        unknown: The share of images of known classes to accept, ``auto`` or ``off``, as for
            :func:`tigranet.workflows.predict.predict`.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        precision: Precision of the graph layers, see :meth:`tigranet.TIGraNet.compute_in`.
        console: Where to show progress.

    Returns:
        The numbers of images and files.

    Raises:
        FileNotFoundError: If the model or a source does not exist.
        ValueError: If an option is not valid, if there are no images, or if the folder has answers of another model,
            of other images or with other options.
        OSError: If a store cannot be reached, or if the folder cannot be written.
        ModuleNotFoundError: If a package is missing that the source, the folder or the engine needs.
    """
    for name, value in (("workers", workers), ("part_size", part_size), ("batch_size", batch_size)):
        if value is not None and value < 1:
            raise ValueError(f"expected {name} to be at least 1, got {value}")
    start = perf_counter()
    parquet_schema([])
    folder = AnswerFolder.at(output)
    options = AnswerOptions(reject, coverage, top, probabilities, unknown, precision)
    name = str(Path(model).resolve()) if Path(model).is_dir() else str(model)
    load_model(name, options, console)
    identity = Identity(name, _model_checksum(name), absolute_sources(source), options.to_json())
    with folder.hold():
        names = folder.names()
        with console.status("listing images") if console and PLAN not in names else nullcontext():
            plan = _plan(folder, names, identity, part_size)
        answers = finished_parts(plan, (name for name in names if name not in (PLAN, MANIFEST)))
        resumed_parts, resumed_images = len(answers), sum(answer.images for answer in answers.values())
        job = Job(name, options, folder, plan.sha256, device, batch_size)
        with BulkProgress(plan, resumed_images, resumed_parts, console) as progress:
            for answer in _run(engine, job, plan, answers.keys(), workers):
                answers[answer.number] = answer
                progress.advance(answer)
        if resumed_parts < plan.parts or MANIFEST not in names:
            write_manifest(plan, answers)
    images = sum(answer.images for answer in answers.values())
    return BulkPrediction(
        folder.location,
        images,
        sum(answer.unreadable for answer in answers.values()),
        plan.parts,
        resumed_parts,
        images - resumed_images,
        perf_counter() - start,
    )


def _plan(folder: AnswerFolder, names: list[str], identity: Identity, part_size: int) -> Plan:
    if PLAN in names:
        plan = read_plan(folder)
        identity.require_equal(plan.identity, folder.location)
        return plan
    if names:
        raise ValueError(
            f"'{folder.location}' has other files, such as '{names[0]}': use a folder that is empty or does not exist"
        )
    return make_plan(folder, identity, part_size)


def _run(engine: Engine, job: Job, plan: Plan, finished: Iterable[int], workers: int | None) -> Iterator[PartAnswer]:
    done = set(finished)
    pending = plan.parts - len(done)
    if pending == 0:
        return
    parts: Iterator[NumberedPart] = ((number, part) for number, part in plan.numbered_parts() if number not in done)
    if engine == "ray":
        from tigranet.workflows.bulk_prediction.ray_engine import predict_with_ray

        yield from predict_with_ray(replace(job, threads=1), parts, workers)
    else:
        count = min(workers or default_workers(job.device), pending)
        threads = max(1, usable_cores() // count)
        yield from predict_locally(replace(job, threads=threads), parts, count)


def _model_checksum(model: str) -> str:
    """Return a checksum of the files of a model that determine its answers."""
    digest = hashlib.sha256()
    for name in (CONFIG, WEIGHTS, CALIBRATION, UNKNOWN_DETECTOR):
        path = model_folder(model) / name
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "none"
        digest.update(f"{name} {content}\n".encode())
    return digest.hexdigest()
