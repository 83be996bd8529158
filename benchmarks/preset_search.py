"""Compare networks and recipes for the default, by accuracy on validation images as they are and rotated.

    python -m benchmarks.preset_search --data-dir data/ --networks NETWORKS.txt --output results/preset-search.csv

Each line of the file NETWORKS.txt is a preset or the layers of a network, and may go on with fields of the recipe:

    MC[16,3]-R[12]-D-MC[32,3]-R[16]-S[2]-FC[64] batch_size=25 steps=400

``steps`` is the number of steps, from which the number of epochs follows, and ``effort=0.5`` halves the default number
of epochs. ``init=pyramid-cifar10`` names a trained network with the same layers, apart from coarsenings, to start from;
it is not measured on photographs, which it was trained on. ``precision=bf16`` replaces the option ``--precision``. No
test image is used: the images come from the training and validation parts of the named data sets. Rows that the output
file already contains are not measured again.
"""

import argparse
import itertools
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

import torch

from benchmarks.resumed_table import measure_rows
from benchmarks.validation_sets import SETS, VALIDATION_IMAGES, draw_any
from tigranet import Architecture, TIGraNet
from tigranet.choices import Precision
from tigranet.choose_window import choose_window
from tigranet.data.augment.rigid import Isometry
from tigranet.evaluation import accuracy, moved_accuracy
from tigranet.fine_tuning import adapted
from tigranet.training import Hardware, Recipe, fit
from tigranet.workflows.measured_training import count_parameters

KEYS = ("data", "images", "network", "seed")
CELLS = (
    ("digits", 50),
    ("digits", 300),
    ("steel", 50),
    ("steel", 300),
    ("steel-32", 50),
    ("steel-32", 300),
    ("plankton", 300),
    ("plankton", 1_000),
    ("plankton-8", 320),
    ("plankton-8-32", 320),
    ("eth80", 50),
    ("eth80", 300),
    ("photographs", 300),
    ("photographs", 1_000),
    ("steel-128", 300),
    ("plankton-8-128", 320),
    ("plankton-in-192", 320),
    ("plankton-in-64", 320),
)
"""Data sets and numbers of training images."""
START_SET = "photographs"
"""The images that the networks of the package to start from were trained on."""


def _parse(network: str) -> tuple[str, dict[str, Any]]:
    """Return the layers of a network, and the fields of its recipe."""
    text, *changes = network.split()
    fields = (change.split("=") for change in changes)
    return text, {name: value if name in ("init", "precision") else _number(value) for name, value in fields}


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


def run(folder: Path, name: str, images: int, network: str, seed: int, precision: Precision = "tf32") -> dict[str, Any]:
    """Train a network, and return its accuracies on validation images."""
    torch.set_num_threads(1)
    data = SETS[name](images, seed, folder)
    shuffled = draw_any(data.validation, 1, VALIDATION_IMAGES)
    validation = data.validation.take(shuffled)
    text, overrides = _parse(network)
    steps, effort, start = overrides.pop("steps", None), overrides.pop("effort", 1.0), overrides.pop("init", None)
    precision = overrides.pop("precision", precision)
    architecture = Architecture.parse(text)
    window = choose_window("auto", architecture, data.train.images).window
    torch.manual_seed(seed)
    channels, names = data.train.images.shape[1], data.class_names
    if start is None:
        net = TIGraNet(architecture, len(names), channels, window=window)
    else:
        saved = adapted(TIGraNet.from_pretrained(start), channels, architecture, window)
        net = saved.with_classes(len(names), names)
    count = len(data.train.labels)
    recipe = Recipe.for_network(net, count, **overrides, seed=seed)
    epochs = recipe.epochs if steps is None else steps * recipe.batch_size / max(count, recipe.batch_size)
    recipe = replace(recipe, epochs=max(1, round(effort * epochs)))
    start = perf_counter()
    fit(net, data.train, None, recipe, hardware=Hardware(precision=precision))
    seconds = perf_counter() - start
    motion = data.test_motion if data.test_motion.rotated else Isometry(rotated=True, padding=data.test_motion.padding)
    return {
        "as they are": round(accuracy(net, validation), 2),
        "rotated": round(moved_accuracy(net, validation, motion, seed).mean, 2),
        "parameters": count_parameters(net),
        "training images": count,
        "epochs": recipe.epochs,
        "batch size": recipe.batch_size,
        "precision": precision,
        "seconds": round(seconds, 1),
    }


def main() -> None:
    """Measure all networks that the output file does not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--networks", type=Path, required=True)
    parser.add_argument("--data", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--precision", choices=get_args(Precision), default="tf32")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    networks = [line.strip() for line in arguments.networks.read_text().splitlines() if line.strip()]
    jobs = [
        (name, images, network, seed)
        for seed, network, (name, images) in itertools.product(range(arguments.seeds), networks, CELLS)
        if name in arguments.data and not (name == START_SET and "init=" in network)
    ]
    measure_rows(
        arguments.output, KEYS, jobs, partial(run, arguments.data_dir, precision=arguments.precision), arguments.workers
    )


if __name__ == "__main__":
    main()
