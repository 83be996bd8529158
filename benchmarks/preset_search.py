"""Compare networks and recipes for the default, by accuracy on validation images as they are and rotated.

    python -m benchmarks.preset_search --data-dir data/ --networks NETWORKS.txt --output results/preset-search.csv

Each line of the file NETWORKS.txt is a preset or the layers of a network, and may go on with fields of the recipe:

    MC[16,3]-R[12]-D-MC[32,3]-R[16]-S[2]-FC[64] batch_size=25 steps=400

``steps`` is the number of steps, from which the number of epochs follows, and ``init=pyramid-cifar10`` names a trained
network with the same layers to start from. No test image is used: the images come from
the training and validation parts of the named data sets. Rows that the output file already contains are not measured
again.
"""

import argparse
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.resumed_table import measure_rows
from benchmarks.small_sets import MIN_CLASS_IMAGES, PLANKTON_CLASSES, select_classes
from tigranet import Architecture, TIGraNet
from tigranet.choices import Precision
from tigranet.choose_window import choose_window
from tigranet.data import DataSet, LabelledImages, load
from tigranet.data.augment.rigid import Isometry
from tigranet.data.splits import draw, draw_balanced
from tigranet.evaluation import accuracy, moved_accuracy
from tigranet.fine_tuning import adapted
from tigranet.training import Hardware, Recipe, fit
from tigranet.workflows.measured_training import count_parameters

KEYS = ("data", "images", "network", "seed")
VALIDATION_IMAGES = 1_000
"""Largest number of validation images."""
CELLS = (
    ("digits", 50),
    ("digits", 300),
    ("steel", 50),
    ("steel", 300),
    ("plankton", 300),
    ("plankton", 1_000),
    ("plankton-8", 320),
    ("eth80", 300),
    ("photographs", 300),
    ("photographs", 1_000),
    ("steel-128", 300),
    ("plankton-8-128", 320),
    ("plankton-in-192", 320),
    ("plankton-in-64", 320),
)
"""Data sets and numbers of training images."""


@lru_cache(maxsize=5)
def _load(name: str, seed: int, folder: Path) -> DataSet:
    return load(name, seed, folder)


def _without_test(name: str, images: int, seed: int, folder: Path) -> DataSet:
    """Draw training images from the training part of a data set."""
    data = _load(name, seed, folder)
    return replace(data, train=data.train.take(_draw_any(data.train, seed, images)))


def _draw_any(part: LabelledImages, seed: int, images: int) -> torch.Tensor:
    return torch.randperm(len(part.labels), generator=torch.Generator().manual_seed(seed))[:images]


def _steel(images: int, seed: int, folder: Path) -> DataSet:
    """Draw training and validation images. The data set has so few that they come from all of its images."""
    data = _load("neu-steel", 1_000 + seed, folder)
    everything = LabelledImages(
        torch.cat([data.train.images, data.test.images]), torch.cat([data.train.labels, data.test.labels])
    )
    train, others = draw(everything.labels, data.class_names, 1_000 + seed, images)
    return replace(data, train=everything.take(train), validation=everything.take(others))


def _plankton_8(images: int, seed: int, folder: Path) -> DataSet:
    """Draw eight classes, with equally many training images."""
    data = _load("plankton", 0, folder)
    counts = data.train.labels.bincount()
    large = np.flatnonzero(counts.numpy() >= MIN_CLASS_IMAGES)
    generator = np.random.default_rng(1_000 + seed)
    classes = torch.from_numpy(np.sort(generator.choice(large, PLANKTON_CLASSES, replace=False)))
    part = select_classes(data.train, classes)
    chosen = draw_balanced(part.labels, seed, images)
    others = torch.ones(len(part.labels), dtype=torch.bool).scatter(0, chosen, False).nonzero().flatten()
    names = tuple(data.class_names[label] for label in classes.tolist())
    return replace(data, class_names=names, train=part.take(chosen), validation=part.take(others))


def _enlarged(name: str, images: int, seed: int, folder: Path) -> DataSet:
    """Return a set with twice the height and width, by bicubic interpolation, in place of larger images."""
    data = SETS[name](images, seed, folder)
    train, validation = (
        part._replace(images=F.interpolate(part.images, scale_factor=2, mode="bicubic").clamp(0, 1))
        for part in (data.train, data.validation.take(_draw_any(data.validation, 1, VALIDATION_IMAGES)))
    )
    return replace(data, train=train, validation=validation)


def _in_large_frames(images: int, seed: int, folder: Path) -> DataSet:
    """Return the eight classes of plankton in frames of 192x192 pixels, each animal at a random position.

    The animals keep their pixels. The rest of a frame has the median of the border of the image. Positions are such
    that a rotation moves no animal out of the frame.
    """
    data = _plankton_8(images, seed, folder)
    generator = torch.Generator().manual_seed(seed)

    def framed(part: LabelledImages) -> LabelledImages:
        count, _, side, _ = part.images.shape
        border = torch.cat([part.images[..., 0, :], part.images[..., -1, :], *part.images[..., (0, -1)].unbind(-1)], -1)
        frames = border.median(-1).values[..., None, None].repeat(1, 1, 3 * side, 3 * side)
        angle = 2 * math.pi * torch.rand(count, generator=generator)
        radius = side / 1.3 * torch.rand(count, generator=generator).sqrt()
        for frame, image, a, r in zip(frames, part.images, angle.tolist(), radius.tolist(), strict=True):
            top, left = round(side + r * math.sin(a)), round(side + r * math.cos(a))
            frame[:, top : top + side, left : left + side] = image
        return part._replace(images=frames)

    validation = data.validation.take(_draw_any(data.validation, 1, VALIDATION_IMAGES))
    return replace(data, train=framed(data.train), validation=framed(validation))


def _reduced_frames(images: int, seed: int, folder: Path) -> DataSet:
    """Return the same frames with a third of the height and width."""
    data = _in_large_frames(images, seed, folder)
    train, validation = (part._replace(images=F.avg_pool2d(part.images, 3)) for part in (data.train, data.validation))
    return replace(data, train=train, validation=validation)


SETS: dict[str, Callable[[int, int, Path], DataSet]] = {
    "digits": partial(_without_test, "mnist-rot10"),
    "steel": _steel,
    "plankton": partial(_without_test, "plankton"),
    "plankton-8": _plankton_8,
    "eth80": partial(_without_test, "eth80"),
    "photographs": partial(_without_test, "cifar10"),
    "steel-128": partial(_enlarged, "steel"),
    "plankton-8-128": partial(_enlarged, "plankton-8"),
    "plankton-in-192": _in_large_frames,
    "plankton-in-64": _reduced_frames,
}
"""By name: functions of the number of training images, the seed and the data folder."""


def _parse(network: str) -> tuple[str, dict[str, Any]]:
    """Return the layers of a network, and the fields of its recipe."""
    text, *changes = network.split()
    fields = (change.split("=") for change in changes)
    return text, {name: value if name == "init" else _number(value) for name, value in fields}


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


def run(folder: Path, name: str, images: int, network: str, seed: int, precision: Precision = "tf32") -> dict[str, Any]:
    """Train a network, and return its accuracies on validation images."""
    torch.set_num_threads(1)
    data = SETS[name](images, seed, folder)
    shuffled = _draw_any(data.validation, 1, VALIDATION_IMAGES)
    validation = data.validation.take(shuffled)
    text, overrides = _parse(network)
    steps, start = overrides.pop("steps", None), overrides.pop("init", None)
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
    if steps is not None:
        recipe = replace(recipe, epochs=max(1, round(steps * recipe.batch_size / max(count, recipe.batch_size))))
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
        if name in arguments.data
    ]
    measure_rows(
        arguments.output, KEYS, jobs, partial(run, arguments.data_dir, precision=arguments.precision), arguments.workers
    )


if __name__ == "__main__":
    main()
