"""Measure whether suggested images teach more than random ones, and whether wrong labels are found.

    python -m benchmarks.suggest --data-dir data/ --output results/suggest.csv

Images: from a pool of 1,500 plankton images of 8 classes, 40 are labelled at random, and 20 more in each round, chosen
by a strategy. After each round, logistic regression on invariant features is fitted to the labelled images and
measured on 400 other images. Strategies were first compared on the classes of draw 0; draws 1 and 2 have others.

Labels: 5 and 10 % of the labels of 1,000 images are replaced by other classes, and ``suggest_labels`` looks for them.

The rows are appended to the output file and to one with ``-labels`` in its name. Rows that the files already contain
are not measured again. At the end, a summary and a figure are written beside them.
"""

import argparse
import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.resumed_table import measure_rows
from benchmarks.small_sets import plankton, steel
from benchmarks.suggest_summary import write_summary
from tigranet.choose_window import choose_window
from tigranet.data import DataSet, LabelledImages, load
from tigranet.evaluation.image_selection import margin_uncertainty, select_images
from tigranet.feature_network import feature_architecture, untrained_network
from tigranet.training.process_state import seeded
from tigranet.workflows.first_answer import compute_features
from tigranet.workflows.label_suggestions import suggest_labels
from tigranet.workflows.labelled_data import LabelledData
from tigranet.workflows.linear_head import EPS, LinearHead

POOL, START, STEP, LAST = 1500, 40, 20, 500
"""Images in the pool, labelled at first, per round, and labelled at the end."""
LABELLED = range(START, LAST + 1, STEP)
LABEL_IMAGES = 1000
IMAGE_KEYS, LABEL_KEYS = ("draw", "strategy", "seed"), ("data", "wrong", "seed")
MODEL = "paper-mnist-012"
"""A model that is never applied: it only says how images of a user would be read."""

Strategy = Callable[[np.ndarray, np.ndarray, int, int], list[int]]
"""From probabilities, representations, a number of images and a seed to positions."""


def choose_random(probabilities: np.ndarray, representations: np.ndarray, count: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).permutation(len(probabilities))[:count].tolist()


def choose_uncertain(probabilities: np.ndarray, representations: np.ndarray, count: int, seed: int) -> list[int]:
    return np.argsort(-margin_uncertainty(probabilities), kind="stable")[:count].tolist()


def choose_diverse(probabilities: np.ndarray, representations: np.ndarray, count: int, seed: int) -> list[int]:
    """Draw by k-means++ in the space of the features: equal probabilities make all gradients equally long."""
    equal = np.full((len(probabilities), 2), 0.5)
    return select_images(equal, representations, count, seed)


STRATEGIES: dict[str, Strategy] = {
    "random": choose_random,
    "uncertain": choose_uncertain,
    "diverse": choose_diverse,
    "both": select_images,
}


class Pool(NamedTuple):
    """Features of the images that can be labelled, and of the test images."""

    features: Tensor
    labels: Tensor
    test_features: Tensor
    test_labels: Tensor


def features_of(data: DataSet, seed: int) -> Pool:
    """Compute the features by a network with random weights, as ``tigranet train --quick`` does."""
    layers = feature_architecture(data.train.images)
    with seeded(seed):
        window = choose_window("auto", layers, data.train.images).window
        network = untrained_network(layers, data.train.images, window=window)
    train, test = data.train, data.test
    return Pool(
        compute_features(network, train.images), train.labels, compute_features(network, test.images), test.labels
    )


def learning_curve(pool: Pool, choose: Strategy, seed: int) -> dict[str, float]:
    """Return the accuracy in per cent by the number of labelled images."""
    num_classes = int(pool.labels.max()) + 1
    order = np.random.default_rng(seed).permutation(len(pool.labels)).tolist()
    labelled, others = order[:START], order[START:]
    accuracies = {}
    for number, count in enumerate(LABELLED):
        head = LinearHead.fit(pool.features[labelled], pool.labels[labelled], num_classes)
        is_correct = head(pool.test_features).argmax(1) == pool.test_labels
        accuracies[str(count)] = round(100 * float(is_correct.double().mean()), 2)
        probabilities = head(pool.features[others]).softmax(1).numpy()
        standardised = (pool.features[others].double() - head.mean) * (head.variance + EPS).rsqrt()
        chosen = choose(probabilities, standardised.float().numpy(), STEP, 1000 * seed + number)
        labelled = labelled + [others[position] for position in chosen]
        others = [image for position, image in enumerate(others) if position not in set(chosen)]
    return accuracies


def digits(images: int, seed: int, folder: Path) -> DataSet:
    """Return upright digits of ten classes, from the 5,000 that need no download."""
    return load("mnist-rot10-mini", seed)


def wrong_labels(data: DataSet, share: float, seed: int) -> tuple[LabelledImages, Tensor]:
    """Replace labels by other classes at random; return the images, and which labels are wrong."""
    generator = torch.Generator().manual_seed(seed)
    train = data.train.take(torch.randperm(len(data.train.labels), generator=generator)[:LABEL_IMAGES])
    count, num_classes = round(share * len(train.labels)), len(data.class_names)
    positions = torch.randperm(len(train.labels), generator=generator)[:count]
    labels = train.labels.clone()
    labels[positions] += torch.randint(1, num_classes, (count,), generator=generator)
    is_wrong = torch.zeros(len(labels), dtype=torch.bool)
    is_wrong[positions] = True
    return LabelledImages(train.images, labels % num_classes), is_wrong


LABEL_SETS: dict[str, Callable[[int, int, Path], DataSet]] = {"digits": digits, "steel": steel, "plankton": plankton}


def main() -> None:
    """Measure everything that the output files do not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--draws", type=int, nargs="+", default=[1, 2, 0])
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--parts", nargs="+", choices=["images", "labels"], default=["images", "labels"])
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    label_output = arguments.output.with_name(f"{arguments.output.stem}-labels.csv")

    @cache
    def pool_of(draw: int) -> Pool:
        return features_of(plankton(POOL, draw, arguments.data_dir), draw)

    def measure_images(draw: int, strategy: str, seed: int) -> dict[str, Any]:
        start = perf_counter()
        curve = learning_curve(pool_of(draw), STRATEGIES[strategy], seed)
        return curve | {"seconds": round(perf_counter() - start, 1)}

    def measure_labels(name: str, share: float, seed: int) -> dict[str, Any]:
        data = LABEL_SETS[name](LABEL_IMAGES, 1, arguments.data_dir)
        images, is_wrong = wrong_labels(data, share, seed)
        start = perf_counter()
        result = suggest_labels(MODEL, LabelledData(data.class_names, images), seed=seed)
        is_found = [bool(is_wrong[label.position]) for label in result.labels]
        first = is_found[: int(is_wrong.sum())]
        return {
            "images": len(is_wrong),
            "accuracy": round(result.accuracy, 1),
            "wrong labels": int(is_wrong.sum()),
            "suggested": len(is_found),
            "precision": round(100 * sum(is_found) / max(1, len(is_found)), 1),
            "recall": round(100 * sum(is_found) / int(is_wrong.sum()), 1),
            "precision of the first": round(100 * sum(first) / max(1, len(first)), 1),
            "seconds": round(perf_counter() - start, 1),
        }

    if "labels" in arguments.parts:
        label_jobs = itertools.product(LABEL_SETS, (0.05, 0.1), range(arguments.seeds))
        measure_rows(label_output, LABEL_KEYS, label_jobs, measure_labels)
    if "images" in arguments.parts:
        jobs = itertools.product(arguments.draws, range(arguments.seeds), arguments.strategies)
        image_jobs = ((draw, strategy, seed) for draw, seed, strategy in jobs)
        measure_rows(arguments.output, IMAGE_KEYS, image_jobs, measure_images)
    write_summary(arguments.output, label_output)


if __name__ == "__main__":
    main()
