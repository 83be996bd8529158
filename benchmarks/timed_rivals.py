"""Convolutional networks to compare with, which are trained on rotated images for a given time."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import nn

from tigranet import TIGraNet
from tigranet.baselines import ResNet
from tigranet.baselines.convnet import comparable_convnet
from tigranet.data import DataSet
from tigranet.notation import FC
from tigranet.training import Recipe
from tigranet.training.process_state import seeded
from tigranet.training.recipe import default_augmentation
from tigranet.workflows.measured_training import count_parameters, train_module

WARM_EPOCHS = 2
"""Number of epochs of a first training, which is not timed: it loads libraries and fills caches."""
TIMED_EPOCHS = 5
"""Number of epochs of the shorter of two timed trainings."""
TIMED_SHARE = 0.08
"""Duration of the longer one, as a fraction of the time that the network is trained for."""


def plain_cnn(network: TIGraNet, data: DataSet) -> nn.Module:
    """Return the plain CNN of the report, with as many parameters as a network."""
    units = tuple(layer.units for layer in network.architecture.layers if isinstance(layer, FC))
    channels, height, width = data.train.images.shape[1:]
    return comparable_convnet(count_parameters(network), units, len(data.class_names), (height, width), channels)


def small_resnet(network: TIGraNet, data: DataSet) -> nn.Module:
    """Return a ResNet of three blocks with batch normalisation."""
    channels, height, width = data.train.images.shape[1:]
    return ResNet("RB[16,1]-RB[32,1]-RB[64,1]", len(data.class_names), (height, width), channels)


RIVALS: dict[str, Callable[[TIGraNet, DataSet], nn.Module]] = {"CNN": plain_cnn, "ResNet": small_resnet}
"""By name: functions that build a network with random weights, for the classes and the images of a data set."""


@dataclass(frozen=True)
class TimedTraining:
    """A network, and the duration of its training."""

    network: nn.Module
    """The trained network, on the CPU."""
    seconds: float
    """Duration of the training."""
    epochs: int
    """Number of epochs."""


def rival_recipe(rival: nn.Module, data: DataSet, seed: int) -> Recipe:
    """Return the default recipe of a network that is not invariant, with rotations, deformations and smoothed labels.

    Args:
        rival: The network.
        data: The data set.
        seed: Seed of the batches and of the augmentation.

    Returns:
        The recipe. Its number of epochs is the default; its learning rate falls to zero for any number.
    """
    images = len(data.train.labels)
    return Recipe.for_network(rival, images, **default_augmentation(images), turned=True, seed=seed)


def train_for(seconds: float, build: Callable[[], nn.Module], data: DataSet, recipe: Recipe) -> TimedTraining:
    """Train a new network on the CPU for a given time, with a schedule that ends at that time.

    A training of n epochs takes a + b n seconds. Two short trainings give a and b, after one that is not timed. The
    network is then trained from random weights, for the number of epochs that takes the given time.

    Args:
        seconds: The time.
        build: A function that returns the network with random weights, always the same ones.
        data: The data set.
        recipe: How to train. The number of epochs is replaced.

    Returns:
        The trained network. Its time differs from ``seconds`` as far as the machine is less or more busy than before.
    """

    def train(epochs: int) -> TimedTraining:
        with seeded(recipe.seed):
            network = build()
        duration = train_module(network, data, replace(recipe, epochs=epochs), device="cpu")
        return TimedTraining(network, duration, epochs)

    train(WARM_EPOCHS)
    short = train(TIMED_EPOCHS)
    long_epochs = TIMED_EPOCHS + max(TIMED_EPOCHS, round(TIMED_EPOCHS * TIMED_SHARE * seconds / short.seconds))
    long = train(long_epochs)
    return train(epochs_for(seconds, short, long))


def epochs_for(seconds: float, short: TimedTraining, long: TimedTraining) -> int:
    """Return the number of epochs that takes a given time, from the durations of two trainings.

    Args:
        seconds: The time.
        short: A training of few epochs.
        long: A training of more epochs.

    Returns:
        The number, at least 1. If the longer training was the faster one, the time per epoch is that of the longer.

    Example:
        >>> epochs_for(100, TimedTraining(nn.Identity(), 3, 5), TimedTraining(nn.Identity(), 13, 25))
        199
    """
    per_epoch = (long.seconds - short.seconds) / (long.epochs - short.epochs)
    start = short.seconds - short.epochs * per_epoch
    if per_epoch <= 0 or start < 0:  # disturbed by other programs
        per_epoch, start = long.seconds / long.epochs, 0.0
    return max(1, round((seconds - start) / per_epoch))
