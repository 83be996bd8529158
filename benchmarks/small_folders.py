"""Compare the default network with CNNs that are trained on rotated images for the same time, on small data sets.

    python -m benchmarks.small_folders --data-dir data/ --output results/small-folders.csv --workers 8

Each job is one draw of one data set: the default network, then each rival for the same time, on the same cores. Rivals
are described in ``benchmarks.timed_rivals``. Test images are in no training, and nothing is chosen by them. Everything
runs on the CPU, in processes that have two cores each. Rows that the output file already contains are not measured
again. The page beside the output file has the means.
"""

import argparse
import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from torch import nn

from benchmarks.resumed_table import measure_rows
from benchmarks.small_folders_summary import write_summary
from benchmarks.small_sets import balanced_plankton, digits, eth80, steel
from benchmarks.timed_rivals import RIVALS, rival_recipe, train_for
from tigranet.data import DataSet
from tigranet.evaluation import accuracy, moved_accuracy
from tigranet.training import Hardware
from tigranet.workflows.first_answer import first_answer
from tigranet.workflows.measured_training import count_parameters
from tigranet.workflows.train import train

KEYS = ("data", "images", "seed")
SETS: dict[str, tuple[int, Callable[[int, int, Path, int], DataSet]]] = {
    "plankton": (320, balanced_plankton),
    "steel": (300, steel),
    "eth80": (300, eth80),
    "digits": (300, digits),
}
"""By name: number of training images, and the function that draws them and the test images."""
TEST_IMAGES = 1_000
"""Largest number of test images."""
WARM_IMAGES = 50
"""Number of images of a first answer that is not timed."""


def run(folder: Path, rivals: tuple[str, ...], epochs: int | None, name: str, images: int, seed: int) -> dict[str, Any]:
    """Train the default network and its rivals, and return their times and their accuracies on test images.

    Args:
        folder: The data folder.
        rivals: Names of rivals.
        epochs: Number of epochs of the default network; None for its default.
        name: Name of the data set.
        images: Number of training images.
        seed: Seed of the draw, of the weights and of the batches.

    Returns:
        The columns.
    """
    data = SETS[name][1](images, seed, folder, TEST_IMAGES)
    without_test = replace(data, test=data.test.take([]))
    cpu = Hardware("cpu")
    # Neither is timed. They load kernels from the cache, or compile them.
    first_answer(data, max_images=WARM_IMAGES, device="cpu")
    train(without_test, seed=seed, hardware=cpu, recipe={"epochs": 1})

    first = first_answer(data, seed=seed, device="cpu")
    start = perf_counter()
    recipe = {"epochs": epochs} if epochs else None
    trained = train(without_test, seed=seed, hardware=cpu, recipe=recipe, extra_minutes=0.0)
    in_all = first.seconds + perf_counter() - start
    seconds = trained.result.seconds
    columns: dict[str, Any] = {
        "network": str(trained.network.architecture),
        "parameters": count_parameters(trained.network),
        "epochs": trained.result.recipe.epochs,
        "first answer, s": round(first.seconds, 1),
        "first answer, cross-validated": round(first.accuracy, 1) if first.accuracy is not None else None,
        "training, s": round(seconds, 1),
        "in all, s": round(in_all, 1),
        "test images": len(data.test.labels),
    }
    columns |= measure("first answer", first.network, data, seed) | measure("ours", trained.network, data, seed)
    for rival in rivals:
        build = partial(RIVALS[rival], trained.network, data)
        timed = train_for(seconds, build, data, rival_recipe(build(), data, seed))
        columns |= {
            f"{rival}, parameters": count_parameters(timed.network),
            f"{rival}, epochs": timed.epochs,
            f"{rival}, s": round(timed.seconds, 1),
        }
        columns |= measure(rival, timed.network, data, seed)
    return columns


def measure(name: str, network: nn.Module, data: DataSet, seed: int) -> dict[str, float]:
    """Return the accuracies of a network in per cent on the test images, as they are and rotated at random."""
    return {
        f"{name}, as they are": round(accuracy(network, data.test), 2),
        f"{name}, rotated": round(moved_accuracy(network, data.test, data.test_motion, seed).mean, 2),
    }


def main() -> None:
    """Measure all draws that the output file does not contain yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--data", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rivals", nargs="+", choices=RIVALS, default=list(RIVALS))
    parser.add_argument("--epochs", type=int, help="Number of epochs instead of the default, to try the command.")
    parser.add_argument("--workers", type=int, default=1, help="Number of processes, each with its own cores.")
    parser.add_argument("--cores", type=int, default=2, help="Number of cores of each process.")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    jobs = [(name, SETS[name][0], seed) for seed, name in itertools.product(range(arguments.seeds), arguments.data)]
    measure_draw = partial(run, arguments.data_dir, tuple(arguments.rivals), arguments.epochs)
    measure_rows(arguments.output, KEYS, jobs, measure_draw, arguments.workers, arguments.cores)
    write_summary(arguments.output)


if __name__ == "__main__":
    main()
