"""Run one experiment with one seed: build its network, train it, and measure it."""

import re
from collections.abc import Collection
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import nn

from tigranet import baselines
from tigranet.baselines.baseline import Baseline
from tigranet.data import DataSet, load
from tigranet.devices import select_accelerator
from tigranet.model import TIGraNet
from tigranet.reproduction.column_measurements import measure_columns
from tigranet.reproduction.experiment import Column, Experiment
from tigranet.reproduction.experiment_data import experiment_data
from tigranet.reproduction.results_file import Record
from tigranet.training import Hardware, Recipe
from tigranet.workflows.measured_training import train_and_measure


def build_network(experiment: Experiment, data: DataSet) -> nn.Module:
    """Create the network of an experiment.

    Args:
        experiment: The experiment.
        data: The data set, for the size of the images and the number of classes.

    Returns:
        The network, not trained.
    """
    channels, height, width = data.train.images.shape[1:]
    is_tigranet = experiment.method == "TIGraNet"
    kind: Any = TIGraNet if is_tigranet else getattr(baselines, experiment.method)
    size = [(height, width)] if issubclass(kind, Baseline) else []
    options = dict(experiment.options)
    if is_tigranet:  # what `predict` needs of a saved network
        options |= {"class_names": data.class_names, "image_size": height if height == width else None}
    network: nn.Module = kind(experiment.architecture, len(data.class_names), *size, channels, **options)
    for part in experiment.without:
        setattr(network, part, nn.Identity())
    return network


def run_experiment(
    experiment: Experiment,
    data_name: str,
    seed: int,
    epochs: int | None = None,
    data_dir: Path | None = None,
    device: str = "auto",
    console: Console | None = None,
    columns: Collection[Column] = (),
    networks: Path | None = None,
) -> Record:
    """Train and measure the network of an experiment.

    Args:
        experiment: The experiment.
        data_name: The data set to use, which may be a smaller version of the experiment's own.
        seed: Seed of the split, the initial weights, the batches and the movements.
        epochs: Number of epochs instead of the experiment's own.
        data_dir: Folder of the named data sets.
        device: The device to train on, see :func:`tigranet.devices.select_device`.
        console: Where to show progress.
        columns: The columns of the table, some of which need further measurements.
        networks: Folder to save the trained network to, in the sub-folder of :func:`network_folder`, before it is
            measured. A network that is there already is not trained again. Only TIGraNet is saved.

    Returns:
        The record of the run.
    """
    data = experiment_data(experiment, load_cached(data_name, seed, data_dir), seed)
    torch.manual_seed(seed)
    network = build_network(experiment, data)
    overrides: dict[str, Any] = experiment.recipe | {"seed": seed} | ({} if epochs is None else {"epochs": epochs})
    recipe = Recipe.for_network(network, len(data.train.labels), **overrides)
    boundary = experiment.options.get("boundary", "free") if experiment.method == "TIGraNet" else "-"
    hardware = Hardware(select_accelerator(device), precision=experiment.precision)
    save_to = networks / network_folder(experiment, data_name, seed) if networks is not None else None
    result = train_and_measure(
        network,
        experiment.architecture,
        data,
        recipe,
        console,
        boundary=boundary,
        device=device,
        save_to=save_to,
        hardware=hardware,
    )
    return (
        result.to_json()
        | measure_columns(network, data, columns)
        | {
            "row": experiment.name,
            "options": experiment.options,
            "without": experiment.without,
            "windowed": experiment.windowed,
            "includes validation": experiment.includes_validation,
            "precision": experiment.precision,
            "measured on": "validation" if experiment.on_validation else "test",
            "seed": seed,
            "epochs given": epochs,
            "layers": experiment.layers,
            "images": len(data.train.labels),
            "recipe": asdict(recipe),
        }
    )


def network_folder(experiment: Experiment, data_name: str, seed: int) -> str:
    """Return the name of the folder of a trained network.

    Args:
        experiment: The experiment.
        data_name: The data set that the network was trained on.
        seed: The seed of the run.

    Returns:
        The data set, the experiment and the seed, in characters that every file system allows.

    Example:
        >>> network_folder(Experiment("TIGraNet", "cifar10", "pyramid", note="pyramid, disc"), "cifar10", 0)
        'cifar10-tigranet-pyramid-disc-seed-0'
    """
    return re.sub(r"[^a-z0-9.]+", "-", f"{data_name} {experiment.name} seed {seed}".lower())


@lru_cache(maxsize=2)
def load_cached(name: str, seed: int, data_dir: Path | None) -> DataSet:
    """Load a named data set; the last two are kept in memory, because consecutive experiments share them.

    Args:
        name: The name of the data set.
        seed: Seed of the split.
        data_dir: Folder of the named data sets.

    Returns:
        The data set.
    """
    return load(name, seed, data_dir)
