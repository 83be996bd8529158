"""The default training recipe for a data set and an architecture."""

from typing import Any

import torch

from tigranet.architecture import Architecture
from tigranet.data.dataset import DataSet
from tigranet.model import TIGraNet
from tigranet.training import Recipe


def choose_recipe(data: DataSet, architecture: Architecture, **overrides: Any) -> Recipe:
    """Return the default recipe for this number of images and this network.

    Args:
        data: The data set to train on.
        architecture: The network to train.
        **overrides: Fields of :class:`~tigranet.training.Recipe` to use instead of the defaults.

    Returns:
        The recipe.
    """
    with torch.device("meta"):  # only the number of parameters is needed
        network = TIGraNet(architecture, len(data.class_names), data.train.images.shape[1])
    return Recipe.for_network(network, len(data.train.labels), **overrides)
