"""The two rivals of the paper's Fig. 1, trained to stand beside a network."""

from dataclasses import replace

import torch
from rich.console import Console
from torch import nn

from tigranet.baselines import STN, ConvNet
from tigranet.data.dataset import DataSet
from tigranet.model import TIGraNet
from tigranet.training import Recipe, fit
from tigranet.training.recipe import SMALL_NETWORK


def rivals_of(
    net: TIGraNet, data: DataSet, seed: int = 0, epochs: int | None = None, console: Console | None = None
) -> dict[str, nn.Module]:
    """ConvNet and STN, of the paper's smaller or larger kind as ``net`` is, trained by the usual recipe on the images
    of ``data``; by their names."""
    size = "paper-small" if sum(parameter.numel() for parameter in net.parameters()) <= SMALL_NETWORK else "paper"
    in_maps, height, width = data.train.images.shape[1:]
    found: dict[str, nn.Module] = {}
    for kind in (ConvNet, STN):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            rival = kind(size, len(data.class_names), (height, width), in_maps)
        recipe = Recipe.for_network(rival, len(data.train.labels), seed=seed)
        recipe = recipe if epochs is None else replace(recipe, epochs=epochs)
        if console:
            console.print(f"training {kind.__name__}, {rival.architecture}: {recipe}")
        fit(rival, data.train, data.validation if len(data.validation.labels) else None, recipe, console)
        found[kind.__name__] = rival
    return found
