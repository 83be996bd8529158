"""A plain CNN to compare a network with: as large, trained on the same images by the same recipe."""

import torch
from rich.console import Console

from tigranet.baselines.convnet import ConvNet, comparable_convnet
from tigranet.data.dataset import DataSet
from tigranet.model import TIGraNet
from tigranet.notation import FC
from tigranet.training import Recipe, fit


def plain_cnn(net: TIGraNet, data: DataSet, recipe: Recipe, console: Console | None = None) -> ConvNet:
    """A trained ConvNet with the fully-connected layers of ``net`` and nearly as many parameters."""
    units = tuple(layer.units for layer in net.architecture.layers if isinstance(layer, FC))
    parameters = sum(parameter.numel() for parameter in net.parameters())
    maps, height, width = data.train.images.shape[1:]
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        rival = comparable_convnet(parameters, units, len(data.class_names), (height, width), maps)
    fit(rival, data.train, data.validation if len(data.validation.labels) else None, recipe, console)
    return rival
