"""What half precision costs in accuracy and gains in time, for networks of the package.

    python -m benchmarks.half_precision --data-dir data/ --output results/half-precision.csv

Each network labels the same test images in each precision that the hardware computes with. A table (.md) is written
beside the CSV file. Rows that the file already contains are not measured again.

* Accuracy as they are and rotated at random.
* The share of images whose label differs from that in single precision, and the largest difference of a probability.
* The largest difference of a probability between an image and its quarter turns.
* Milliseconds per image, the shortest of several passes, and how many times as fast this is as single precision.
"""

import argparse
import csv
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from benchmarks.resumed_table import measure_rows
from tigranet import TIGraNet
from tigranet.choices import InferencePrecision
from tigranet.data import DataSet, load
from tigranet.data.augment.rigid import Isometry
from tigranet.devices import select_device
from tigranet.evaluation.batched_inference import apply_in_batches
from tigranet.half_precision import HALF_TYPES, computes_with

CASES = (
    ("pyramid-cifar10", "cifar10"),
    ("pyramid-plankton", "plankton"),
    ("oriented-large-mnist-rot", "mnist-rot"),
    ("oriented-eth80", "eth80"),
    ("paper-mnist-rot", "mnist-rot"),
)
"""Networks of the package, and data sets with their classes."""
KEYS = ("network", "data", "precision")
SINGLE: InferencePrecision = "32"
IMAGES, BATCH_SIZE = 1_000, 64
QUARTER_TURNS = 200
"""Number of images whose quarter turns are compared."""
PASSES = 2
LOADED_DATA = 2
"""Number of data sets that are kept in memory."""


@lru_cache(maxsize=LOADED_DATA)
def _load(name: str, folder: Path) -> DataSet:
    return load(name, 0, folder)


def probabilities(network: TIGraNet, images: Tensor) -> Tensor:
    """Return the probabilities of all classes, (count, classes)."""
    return apply_in_batches(network, images.split(BATCH_SIZE)).softmax(1)


def measure(folder: Path, device: str, name: str, data: str, precision: InferencePrecision) -> dict[str, Any]:
    """Measure one network in one precision, beside single precision.

    Args:
        folder: Folder of the data sets.
        device: Where to compute.
        name: The network.
        data: The data set.
        precision: The precision.

    Returns:
        The columns of the table.
    """
    network = TIGraNet.from_pretrained(name).to(select_device(device))
    test, motion = _load(data, folder).test, _load(data, folder).test_motion
    drawn = test.take(torch.randperm(len(test.labels), generator=torch.Generator().manual_seed(0))[:IMAGES])
    images = drawn.images
    rotated = Isometry(rotated=True, padding=motion.padding)(images, torch.Generator().manual_seed(0))
    seconds = {}
    answers = {}
    for each in dict.fromkeys((SINGLE, precision)):
        network.compute_in(each)
        durations = []
        for _ in range(PASSES):
            start = perf_counter()
            answers[each] = probabilities(network, images)
            durations.append(perf_counter() - start)
        seconds[each] = min(durations)
    turned = images[:QUARTER_TURNS].rot90(1, (2, 3))
    difference = (probabilities(network, turned) - answers[precision][:QUARTER_TURNS]).abs().max()
    labels = {each: answer.argmax(1) for each, answer in answers.items()}
    return {
        "images": len(images),
        "as they are": round(_percent(labels[precision] == drawn.labels), 2),
        "rotated": round(_percent(probabilities(network, rotated).argmax(1) == drawn.labels), 2),
        "labels changed": round(_percent(labels[precision] != labels[SINGLE]), 2),
        "probability": round(float((answers[precision] - answers[SINGLE]).abs().max()), 4),
        "quarter turn": float(f"{float(difference):.1e}"),
        "ms": round(1e3 * seconds[precision] / len(images), 3),
        "times as fast": round(seconds[SINGLE] / seconds[precision], 2),
    }


def _percent(is_true: Tensor) -> float:
    return 100 * float(is_true.double().mean())


def precisions(device: str) -> Iterator[InferencePrecision]:
    """Yield the precisions that a device computes with."""
    yield SINGLE
    for name, dtype in HALF_TYPES.items():
        if computes_with(select_device(device), dtype):
            yield name  # type: ignore[misc]  # the names of HALF_TYPES are precisions


def write_table(path: Path) -> None:
    """Write the rows of a CSV file as a table beside it."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    columns = (*KEYS, "images", "as they are", "rotated", "labels changed", "probability", "quarter turn", "ms")
    lines = [
        "# Half precision",
        "",
        f"`python -m benchmarks.half_precision --output results/{path.name}`: {__doc__.splitlines()[0].lower()}",
        "Accuracy and changed labels in per cent, the largest difference of a probability from single precision and "
        "between an image and its quarter turn, milliseconds per image, and the factor to single precision.",
        "",
        f"{rows[0]['gpu'] or rows[0]['cpu']}, {rows[0]['threads']} threads, PyTorch {rows[0]['torch']}.",
        "",
        f"| {' | '.join(columns)} | times as fast |",
        "| --- | --- | --- |" + " ---: |" * (len(columns) - 2),
        *(f"| {' | '.join(row[column] for column in columns)} | {row['times as fast']} |" for row in rows),
    ]
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Measure all networks in all precisions that the output file does not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    jobs = [(*case, precision) for case in CASES for precision in precisions(arguments.device)]
    measure_rows(arguments.output, KEYS, jobs, partial(measure, arguments.data_dir, arguments.device))
    write_table(arguments.output)


if __name__ == "__main__":
    main()
