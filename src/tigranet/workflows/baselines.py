"""Train other networks to compare a TIGraNet with: a plain CNN, or the paper's ConvNet and STN."""

from dataclasses import replace

from rich.console import Console
from torch import nn

from tigranet.baselines import STN, ConvNet
from tigranet.baselines.convnet import comparable_convnet
from tigranet.data.dataset import DataSet
from tigranet.model import TIGraNet
from tigranet.notation import FC
from tigranet.training import Recipe
from tigranet.training.process_state import seeded
from tigranet.training.recipe import SMALL_NETWORK
from tigranet.workflows.measured_training import count_parameters, train_module


def train_plain_cnn(
    network: TIGraNet, data: DataSet, recipe: Recipe, console: Console | None = None, *, device: str = "auto"
) -> ConvNet:
    """Train a plain CNN of the same size as ``network``, on the same images with the same recipe.

    Args:
        network: The network to compare with.
        data: The data set.
        recipe: How to train. Its seed draws the initial weights.
        console: Where to show progress.
        device: The device to train on, see :func:`tigranet.devices.select_device`.

    Returns:
        A trained ConvNet with the fully-connected layers of ``network`` and nearly as many parameters.
    """
    units = tuple(layer.units for layer in network.architecture.layers if isinstance(layer, FC))
    channels, height, width = data.train.images.shape[1:]
    with seeded(recipe.seed):
        cnn = comparable_convnet(count_parameters(network), units, len(data.class_names), (height, width), channels)
    train_module(cnn, data, recipe, console, device=device)
    return cnn


def recipe_with_rotations(recipe: Recipe, network: TIGraNet, data: DataSet) -> Recipe:
    """Return how to train a CNN to compare with on rotated images, as somebody would who needs rotations.

    It is the default recipe of a CNN, which has no use for the short training of an oriented network. The number of
    epochs is in proportion: if the recipe of the network has half of its default number of epochs, so has this one.

    Args:
        recipe: The recipe of the network.
        network: The network to compare with.
        data: The data set.

    Returns:
        A recipe that rotates every training image by a random angle.
    """
    images = len(data.train.labels)
    default = Recipe.for_images(images, count_parameters(network))
    epochs = recipe.epochs * default.epochs / Recipe.for_network(network, images).epochs
    return replace(default, epochs=max(1, round(epochs)), balanced=recipe.balanced, seed=recipe.seed, turned=True)


def train_paper_baselines(
    network: TIGraNet,
    data: DataSet,
    seed: int = 0,
    epochs: int | None = None,
    console: Console | None = None,
    *,
    device: str = "auto",
) -> dict[str, nn.Module]:
    """Train the two baselines of the paper's Fig. 1, ConvNet and STN, with their default recipes.

    Args:
        network: The network to compare with. The baselines are the paper's small ones if it is small, otherwise the
            large ones.
        data: The data set.
        seed: Seed of the initial weights and of the batches.
        epochs: Number of epochs instead of the default.
        console: Where to show progress.
        device: The device to train on, see :func:`tigranet.devices.select_device`.

    Returns:
        The trained networks by name, ``ConvNet`` and ``STN``.
    """
    preset = "paper-small" if count_parameters(network) <= SMALL_NETWORK else "paper"
    channels, height, width = data.train.images.shape[1:]
    trained: dict[str, nn.Module] = {}
    for kind in (ConvNet, STN):
        with seeded(seed):
            baseline = kind(preset, len(data.class_names), (height, width), channels)
        recipe = Recipe.for_network(baseline, len(data.train.labels), seed=seed)
        recipe = recipe if epochs is None else replace(recipe, epochs=epochs)
        if console:
            console.print(f"training {kind.__name__}, {baseline.architecture}: {recipe}")
        train_module(baseline, data, recipe, console, device=device)
        trained[kind.__name__] = baseline
    return trained
