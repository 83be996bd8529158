"""The network that a training trains: its layers, its window, the network that it starts from, and its recipe."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tigranet.architecture import Architecture
from tigranet.choices import Boundary, WindowOption
from tigranet.choose_architecture import choose_preset, epochs_share
from tigranet.choose_window import WindowChoice, choose_window
from tigranet.data import DataSet
from tigranet.fine_tuning import Start, default_start
from tigranet.model import TIGraNet
from tigranet.training import Recipe
from tigranet.training.process_state import seeded
from tigranet.workflows.choose_recipe import choose_recipe


@dataclass(frozen=True)
class NetworkOptions:
    """What the user asks for, whatever the layers of the network are."""

    boundary: Boundary = "free"
    """What lies beyond the border of the pixel grid."""
    window: WindowOption = "auto"
    """The window, or ``auto`` to choose it from the images and the layers."""
    margin: int = 0
    """Width in pixels of the margin around the images."""
    seed: int = 0
    """Seed of the initial weights and of the training."""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe to use instead of the defaults."""
    shipped_starts: bool = True
    """Whether a default network may start from one of the package."""


@dataclass(frozen=True)
class ChosenNetwork:
    """A network to train."""

    name: str
    """Its preset, or its layers if it has none."""
    architecture: Architecture
    """Its layers."""
    window: WindowChoice
    """Its window, and why."""
    recipe: Recipe
    """How it is trained."""
    options: NetworkOptions
    """What the user asks for."""
    start: Start | None = None
    """The network that the training starts from, if it does not start from random weights."""

    def new_network(self, data: DataSet) -> TIGraNet:
        """Create the network for the images and classes of a data set.

        Args:
            data: The data set.

        Returns:
            The network. The random numbers of the caller are left alone.
        """
        channels, height, width = data.train.images.shape[1:]
        side = height if height == width else None
        with seeded(self.options.seed):
            if self.start is not None:
                return self.start.network.with_classes(len(data.class_names), data.class_names, side)
            return TIGraNet(
                self.architecture,
                len(data.class_names),
                channels,
                boundary=self.options.boundary,
                window=self.window.window,
                margin=self.options.margin,
                class_names=data.class_names,
                image_size=side,
            )

    def describe_start(self) -> str:
        """Return what the training starts from, for the user."""
        return "starts from random weights" if self.start is None else f"starts from '{self.start.name}'"

    def origin(self) -> dict[str, str | None]:
        """Return the window and the start, for the record of the training."""
        return {"window": self.window.window, "init": None if self.start is None else self.start.name}


def requested_network(
    data: DataSet, architecture: Architecture, options: NetworkOptions, start: Start | None = None
) -> ChosenNetwork:
    """Return a network of layers that are given.

    Args:
        data: The data set to train on.
        architecture: The layers.
        options: What the user asks for.
        start: The network that the training starts from.

    Returns:
        The network, with the window and the recipe that suit the layers and the images.
    """
    window = choose_window(options.window, architecture, data.train.images)
    recipe = choose_recipe(data, architecture, **{**options.recipe, "seed": options.seed})
    return ChosenNetwork(str(architecture), architecture, window, recipe, options, start)


def default_network(data: DataSet, accurate: bool, options: NetworkOptions, gpu: bool = False) -> ChosenNetwork:
    """Return the default network for the images of a data set.

    Args:
        data: The data set to train on.
        accurate: Whether to choose the network that is the default on a GPU: more accurate, and much slower on a CPU.
        options: What the user asks for.
        gpu: Whether it is trained on a GPU. On a CPU, an accurate network may have fewer epochs, see
            :func:`~tigranet.choose_architecture.epochs_share`.

    Returns:
        The network. It starts from a network of the package if there is one for it.
    """
    count, channels, height, width = data.train.images.shape
    side = max(height, width)
    preset = choose_preset(count, side, accurate)
    chosen = replace(requested_network(data, Architecture.parse(preset), options), name=preset)
    start: Start | None = None
    if options.shipped_starts:
        window = chosen.window.window
        start = default_start(preset, count, channels, options.boundary, window, options.margin, data.name)
    share = 1.0 if "epochs" in options.recipe else epochs_share(count, side, accurate, gpu, start is None)
    return replace(chosen, start=start, recipe=chosen.recipe.shortened(share))
