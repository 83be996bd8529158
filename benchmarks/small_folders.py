"""Compare the default network with a CNN that is trained on rotated images for the same time, on small data sets.

    python -m benchmarks.small_folders --data-dir data/ --output results/small-folders.csv

The CNN is the plain CNN of the report, with as many parameters as the network, and the recipe that the report gives it.
Its number of epochs is chosen such that its training takes as long as that of the network. Everything runs on the CPU.
Rows that the output file already contains are not measured again.
"""

import argparse
import itertools
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from benchmarks.resumed_table import measure_rows
from benchmarks.small_sets import SETS
from tigranet.data import LabelledImages
from tigranet.evaluation import accuracy
from tigranet.training import Hardware, Recipe
from tigranet.workflows.baselines import recipe_with_rotations, train_plain_cnn
from tigranet.workflows.train import train

KEYS = ("data", "images", "seed")
IMAGES = {"plankton": 320, "steel": 300, "eth80": 300, "digits": 300}
"""Number of training images of each data set."""
TIMED_EPOCHS = 5
"""Number of epochs from which the time of the CNN is estimated."""


def run(folder: Path, name: str, images: int, seed: int) -> dict[str, Any]:
    """Train both networks, and return their times and their accuracies on test images."""
    data = SETS[name](images, seed, folder)
    trained = train(data, seed=seed, hardware=Hardware("cpu"))
    network, seconds = trained.network, trained.result.seconds
    recipe = recipe_with_rotations(trained.result.recipe, network, data)

    def train_cnn(recipe: Recipe) -> tuple[torch.nn.Module, float]:
        start = perf_counter()
        cnn = train_plain_cnn(network, data, recipe, device="cpu")
        return cnn, perf_counter() - start

    _, timed = train_cnn(replace(recipe, epochs=TIMED_EPOCHS))
    cnn, cnn_seconds = train_cnn(replace(recipe, epochs=max(1, round(TIMED_EPOCHS * seconds / timed))))
    generator = torch.Generator().manual_seed(seed)
    rotated = LabelledImages(data.test_motion(data.test.images, generator), data.test.labels)
    return {
        "network": str(network.architecture),
        "seconds": round(seconds, 1),
        "as they are": round(accuracy(network, data.test), 1),
        "rotated": round(accuracy(network, rotated), 1),
        "CNN, seconds": round(cnn_seconds, 1),
        "CNN, as they are": round(accuracy(cnn, data.test), 1),
        "CNN, rotated": round(accuracy(cnn, rotated), 1),
    }


def main() -> None:
    """Measure all draws that the output file does not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--data", nargs="+", choices=IMAGES, default=list(IMAGES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    jobs = [(name, IMAGES[name], seed) for seed, name in itertools.product(range(arguments.seeds), arguments.data)]
    measure_rows(arguments.output, KEYS, jobs, partial(run, arguments.data_dir))


if __name__ == "__main__":
    main()
