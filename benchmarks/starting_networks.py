"""Train and save the networks that ``benchmarks.fine_tuning`` starts from.

    python -m benchmarks.starting_networks --data-dir data/ --output starts/ --networks pyramid-small --workers 3

Each network is saved to a folder such as ``starts/pyramid-small-plankton``, which ``tigranet train --init`` takes, too.
Networks that are there already are not trained again. ``--starts all-plankton`` trains on all classes of plankton.
"""

import argparse
import itertools
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch

from benchmarks.transfer_sets import STARTS
from tigranet import Architecture, TIGraNet
from tigranet.choose_window import choose_window
from tigranet.data import DataSet
from tigranet.training import Recipe
from tigranet.training.process_state import seeded
from tigranet.workflows.measured_training import train_module
from tigranet.workflows.trained_network import RECIPE_FILE, train_once


def new_network(architecture: str, data: DataSet, seed: int) -> TIGraNet:
    """Return a network with random weights for the classes and the images of a data set.

    Args:
        architecture: A preset, or layers.
        data: The data set.
        seed: Seed of the weights.

    Returns:
        The network, with the window that ``tigranet train`` chooses.
    """
    layers = Architecture.parse(architecture)
    channels, height, _ = data.train.images.shape[1:]
    window = choose_window("auto", layers, data.train.images).window
    names = data.class_names
    with seeded(seed):
        return TIGraNet(layers, len(names), channels, window=window, class_names=names, image_size=height)


def start_folder(folder: Path, architecture: str, start: str) -> Path:
    """Return the folder of a starting network."""
    return folder / f"{architecture}-{start}"


def is_trained(folder: Path, architecture: str, start: str) -> bool:
    """Return whether a starting network is complete. Its recipe is written last."""
    return (start_folder(folder, architecture, start) / RECIPE_FILE).exists()


def train_start(data_dir: Path, folder: Path, epochs: int | None, architecture: str, start: str) -> str:
    """Train and save one network with its recipe, unless it is there already, and return a line about it."""
    torch.set_num_threads(1)
    build, default_epochs = STARTS[start]
    data = build(data_dir)
    network = new_network(architecture, data, seed=0)
    recipe = Recipe.for_network(network, len(data.train.labels), epochs=epochs or default_epochs)
    output = start_folder(folder, architecture, start)
    seconds = train_once(output, network, recipe, partial(train_module, network, data, recipe))
    return f"{output}: {len(data.train.labels)} images, {seconds:.0f} s; {recipe}"


def main() -> None:
    """Train all networks that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--networks", nargs="+", default=["pyramid-small"])
    parser.add_argument("--starts", nargs="+", choices=STARTS, default=["photographs", "plankton", "steel"])
    parser.add_argument("--epochs", type=int, help="Number of epochs instead of the default.")
    parser.add_argument("--workers", type=int, default=1, help="Number of processes, which share the GPU.")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    jobs = itertools.product(arguments.networks, arguments.starts)
    with ProcessPoolExecutor(arguments.workers, get_context("spawn")) as pool:
        options = arguments.data_dir, arguments.output, arguments.epochs
        for future in [pool.submit(train_start, *options, *job) for job in jobs]:
            print(future.result(), flush=True)


if __name__ == "__main__":
    main()
