"""Predict the images of one part, and write the answers to one Parquet file."""

import io
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

from rich.console import Console

from tigranet.choices import InferencePrecision
from tigranet.data.letterbox import ImageItem, UnreadableFile
from tigranet.devices import select_device
from tigranet.evaluation.batched_inference import module_device
from tigranet.evaluation.file_predictions import (
    BATCH_SIZE,
    READING_THREADS,
    LabelSets,
    Prediction,
    check_reject,
    predict_files,
)
from tigranet.evaluation.parquet_rows import Row, parquet_row, parquet_schema
from tigranet.evaluation.prediction_detail import Detail
from tigranet.evaluation.prediction_rows import column_names, prediction_row
from tigranet.evaluation.unknown.novelty import UnknownImages
from tigranet.model import TIGraNet
from tigranet.model_limits import check_choice
from tigranet.workflows.bulk_prediction.answer_folder import AnswerFolder
from tigranet.workflows.bulk_prediction.parts import FilePart, NamedImage, Part
from tigranet.workflows.bulk_prediction.plan import part_name
from tigranet.workflows.predict import load_label_sets
from tigranet.workflows.unknown_detection import AUTO, load_unknown_images

WAITING_THREADS = 32
"""Number of threads that read images from a store, most of which wait for an answer."""
PLAN_KEY, PART_KEY, UNREADABLE_KEY = "tigranet.plan", "tigranet.part", "tigranet.unreadable"
"""Keys in a Parquet file: the checksum of the plan, the number of the part, and the number of images without answer."""


@dataclass(frozen=True)
class AnswerOptions:
    """Options that change the answers, as for :func:`tigranet.workflows.predict.predict`."""

    reject: float = 0.0
    coverage: float | None = None
    top: int = 0
    probabilities: bool = False
    unknown: str | float = AUTO
    precision: InferencePrecision = "32"

    def to_json(self) -> dict[str, Any]:
        """Return the options by name, the precision only if it is not the default, which earlier plans do not name."""
        options = asdict(self) | {"unknown": str(self.unknown)}
        return {name: value for name, value in options.items() if (name, value) != ("precision", "32")}


@dataclass(frozen=True)
class Job:
    """What a worker needs to know about a bulk prediction, beside the parts."""

    model: str
    """Name or absolute path of the model."""
    options: AnswerOptions
    folder: AnswerFolder
    """Where the answers are written."""
    plan_sha256: str
    """Checksum of the plan."""
    device: str = "auto"
    """Where to compute, see :func:`tigranet.devices.select_device`."""
    batch_size: int = BATCH_SIZE
    """Largest batch size."""
    threads: int | None = None
    """Number of threads of PyTorch in a worker process, or None for its own choice."""


class PartAnswer(NamedTuple):
    """What is recorded about a part whose answers are written."""

    number: int
    """Number of the part."""
    images: int
    """Number of rows: images with an answer or with a reason why there is none."""
    unreadable: int
    """Number of images without an answer."""


class LoadedModel(NamedTuple):
    """A network, and what the options need."""

    network: TIGraNet
    label_sets: LabelSets | None
    unknown: UnknownImages | None


def load_model(model: str, options: AnswerOptions, console: Console | None = None) -> LoadedModel:
    """Load a network, and check the options.

    Args:
        model: Name or path of the model.
        options: The options.
        console: Where to print what the user must know about the options.

    Returns:
        The network on the CPU, and what the options need.

    Raises:
        FileNotFoundError: If there is no such model.
        ValueError: If an option is not valid, or if the model lacks what it needs.
    """
    check_reject(options.reject)
    check_choice("precision", options.precision, InferencePrecision)
    Detail(options.top, options.probabilities).check()
    network = TIGraNet.from_pretrained(model)
    if network.image_size is None:
        raise ValueError(f"'{model}' has no image_size, so files cannot be scaled: train it with 'tigranet train'")
    return LoadedModel(
        network,
        load_label_sets(model, network, options.coverage, console),
        load_unknown_images(model, network, options.unknown, console),
    )


class PartPredictor:
    """Predict parts. The network is loaded for the first part, and kept.

    Args:
        job: What to predict with, and where to write the answers.
    """

    def __init__(self, job: Job) -> None:
        self.job = job

    @cached_property
    def _loaded(self) -> LoadedModel:
        loaded = load_model(self.job.model, self.job.options)
        network = loaded.network.to(select_device(self.job.device))
        return loaded._replace(network=network.compute_in(self.job.options.precision))

    def __call__(self, number: int, part: Part) -> PartAnswer:
        """Predict the images of a part, and write the answers. An earlier file of this part is replaced.

        Args:
            number: Number of the part.
            part: The part.

        Returns:
            The number of images.

        Raises:
            OSError: If the images cannot be reached, or if the answers cannot be written.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = [parquet_row(row) for row in self._rows(part)]
        unreadable = sum(row["error"] is not None for row in rows)
        metadata = {PLAN_KEY: self.job.plan_sha256, PART_KEY: str(number), UNREADABLE_KEY: str(unreadable)}
        content = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, parquet_schema(self._columns, metadata)), content)
        self.job.folder.write(part_name(number), content.getvalue())
        return PartAnswer(number, len(rows), unreadable)

    @property
    def _columns(self) -> list[str]:
        options, loaded = self.job.options, self._loaded
        return [
            *column_names(
                loaded.network.class_names,
                top=options.top,
                probabilities=options.probabilities,
                label_sets=loaded.label_sets is not None,
                novelty=loaded.unknown is not None,
            ),
            "error",
        ]

    def _reading_threads(self, part: Part) -> int:
        """Return the number of threads that decode images while the network computes.

        A worker that has one core for everything decodes in the thread that computes, unless it may have to wait for a
        disk: the other cores have workers of their own. Beside a network on the CPU, images that are read fast are not
        read in threads at all, see :data:`~tigranet.evaluation.file_predictions.MIN_THREADED_SECONDS`.
        """
        if part.waits:
            return WAITING_THREADS
        if self.job.threads == 1 and module_device(self._loaded.network).type == "cpu":
            return 1 if isinstance(part, FilePart) else 0
        return min(READING_THREADS, os.cpu_count() or 1)

    def _rows(self, part: Part) -> Iterator[Row]:
        options, loaded = self.job.options, self._loaded
        names: deque[str] = deque()  # A Path would lose one of the slashes of a URL.

        def images(named_images: Iterator[NamedImage]) -> Iterator[ImageItem]:
            for name, image in named_images:
                names.append(name)
                yield image

        predictions = predict_files(
            loaded.network,
            images(part.read()),
            options.reject,
            self.job.batch_size,
            label_sets=loaded.label_sets,
            detail=Detail(options.top, options.probabilities),
            unknown=loaded.unknown,
            threads=self._reading_threads(part),
        )
        for result in predictions:
            name = names.popleft()
            if isinstance(result, UnreadableFile):
                yield {"path": name, "error": result.reason}
            else:
                assert isinstance(result, Prediction)
                yield prediction_row(result, as_json=False) | {"path": name, "error": None}


def read_part_answer(folder: AnswerFolder, number: int, plan_sha256: str) -> PartAnswer | None:
    """Check the file with the answers of a part. Only its end is read.

    Args:
        folder: The folder of the answers.
        number: Number of the part.
        plan_sha256: Checksum of the plan that it must belong to.

    Returns:
        The numbers of images, or None if the file is damaged.

    Raises:
        ValueError: If the file belongs to another plan or part.
        OSError: If the file cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with folder.open(part_name(number)) as file:
            metadata = pq.ParquetFile(file).metadata
    except pa.ArrowInvalid:
        return None
    stored = {key.decode(): value.decode() for key, value in (metadata.metadata or {}).items()}
    if (stored.get(PLAN_KEY), stored.get(PART_KEY)) != (plan_sha256, str(number)):
        raise ValueError(
            f"'{folder.address(part_name(number))}' does not belong to the plan in this folder: use another output "
            "folder, or delete this one to begin again"
        )
    return PartAnswer(number, metadata.num_rows, int(stored[UNREADABLE_KEY]))
