"""Compare trainings that start from trained networks with trainings that start from random weights.

    python -m benchmarks.starting_networks --data-dir data/ --output starts/ --workers 3
    python -m benchmarks.fine_tuning --data-dir data/ --starts-dir starts/ --output results/fine-tuning.csv --workers 12

The tasks have 50 to 1,000 training images of classes that the starting network has not seen. 'random' starts from
random weights; the other starts are described in ``benchmarks.transfer_sets``, and a start for which ``--starts-dir``
has no network is left out. 'quarter' has a quarter of the steps; rates are factors of the learning rate. Accuracies are
measured on validation images. Rows that the output file already contains are not measured again. The page beside the
output file has the means.
"""

import argparse
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from benchmarks.fine_tuning_summary import write_summary
from benchmarks.resumed_table import measure_rows
from benchmarks.starting_networks import is_trained, new_network, start_folder
from benchmarks.transfer_sets import SUITABLE_STARTS, TASKS
from tigranet import TIGraNet
from tigranet.data.augment.rigid import Isometry
from tigranet.evaluation import accuracy, moved_accuracy
from tigranet.fine_tuning import DEFAULT_STARTS, adapted
from tigranet.training import Hardware, Recipe, fit
from tigranet.training.process_state import seeded

KEYS = ("network", "data", "images", "start", "steps", "rate", "seed")
IMAGES = (50, 200, 1_000)
STEPS = {"all": 1.0, "quarter": 0.25}
"""By name: the number of epochs as a fraction of the default."""
RATES = (1.0, 0.3)
"""Factors of the learning rate. Trainings from random weights have the first one only."""

Job = tuple[str, str, int, str, str, float, int]


def run(
    data_dir: Path, starts_dir: Path, architecture: str, name: str, images: int, start: str, steps: str, rate: float,
    seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Train a network, and return its accuracies on validation images.

    Args:
        data_dir: The data folder.
        starts_dir: Folder of the starting networks.
        architecture: Preset of the network.
        name: Name of the task.
        images: Number of training images.
        start: Name of the start, or ``random``.
        steps: A key of ``STEPS``.
        rate: Factor of the learning rate.
        seed: Seed of the draw, of new weights and of the batches.

    Returns:
        The columns.
    """
    torch.set_num_threads(1)
    data = TASKS[name](images, seed, data_dir)
    network = new_network(architecture, data, seed)
    if start != "random":
        name = DEFAULT_STARTS[architecture] if start == "shipped" else start_folder(starts_dir, architecture, start)
        saved = adapted(TIGraNet.from_pretrained(name), network.in_maps, window=network.window)
        with seeded(seed):
            network = saved.with_classes(len(data.class_names), data.class_names, data.train.images.shape[2])
    recipe = Recipe.for_network(network, len(data.train.labels), seed=seed)
    epochs = max(1, round(recipe.epochs * STEPS[steps]))
    recipe = replace(recipe, epochs=epochs, learning_rate=recipe.learning_rate * rate)
    begin = perf_counter()
    hardware = Hardware(precision="bf16" if network.architecture.has_group_convolutions else "tf32")
    fit(network, data.train, None, recipe, hardware=hardware)
    seconds = perf_counter() - begin
    motion = Isometry(rotated=True, padding=data.test_motion.padding)
    return {
        "number of steps": epochs * -(-len(data.train.labels) // recipe.batch_size),
        "seconds": round(seconds, 1),
        "as they are": round(accuracy(network, data.validation), 2),
        "rotated": round(moved_accuracy(network, data.validation, motion, seed).mean, 2),
    }


def all_jobs(
    networks: list[str],
    tasks: list[str],
    images: list[int],
    starts: list[str],
    seeds: int,
    starts_dir: Path,
    rates: Sequence[float] = RATES,
    steps_names: Sequence[str] = tuple(STEPS),
) -> Iterator[Job]:
    """Yield the jobs, the most important ones first.

    Args:
        networks: Presets.
        tasks: Names of tasks.
        images: Numbers of training images.
        starts: Names of starts; those that have seen classes of a task, or have no network, are left out.
        seeds: Number of seeds.
        starts_dir: Folder of the starting networks.
        rates: Factors of the learning rate.
        steps_names: Keys of :data:`STEPS`.

    Yields:
        The values of :data:`KEYS`.
    """
    for rate, seed, steps in itertools.product(rates, range(seeds), steps_names):
        for network, task, count, start in itertools.product(networks, tasks, images, starts):
            if start == "random":
                exists = rate == RATES[0]
            else:
                trained = network in DEFAULT_STARTS if start == "shipped" else is_trained(starts_dir, network, start)
                exists = start in SUITABLE_STARTS[task] and trained
            if exists:
                yield network, task, count, start, steps, rate, seed


def main() -> None:
    """Measure all trainings that the output file does not contain yet, and write the page."""
    names = ["random", *dict.fromkeys(itertools.chain(*SUITABLE_STARTS.values()))]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--starts-dir", type=Path, default=Path("starts"))
    parser.add_argument("--networks", nargs="+", default=["pyramid-small"])
    parser.add_argument("--data", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--images", type=int, nargs="+", default=IMAGES)
    parser.add_argument("--starts", nargs="+", choices=names, default=names)
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1, help="Number of processes, which share the GPU.")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    jobs = all_jobs(
        arguments.networks,
        arguments.data,
        arguments.images,
        arguments.starts,
        arguments.seeds,
        arguments.starts_dir,
        arguments.rates,
        arguments.steps,
    )
    measure = partial(run, arguments.data_dir, arguments.starts_dir)
    measure_rows(arguments.output, KEYS, jobs, measure, arguments.workers)
    write_summary(arguments.output)


if __name__ == "__main__":
    main()
