"""Run one experiment with one seed: build its network, train it, and measure it."""

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
    network: nn.Module = kind(experiment.architecture, len(data.class_names), *size, channels, **experiment.options)
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
    result = train_and_measure(
        network,
        experiment.architecture,
        data,
        recipe,
        console,
        boundary=boundary,
        device=device,
        hardware=hardware,
    )
    return (
        result.to_json()
        | measure_columns(network, data, recipe, columns)
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
