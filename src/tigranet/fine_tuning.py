"""Start a training from a saved network instead of random weights."""

import math
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from tigranet.architecture import LC, MC, Architecture, D
from tigranet.choices import Boundary, Window, WindowOption
from tigranet.data.luminance import LUMINANCE_WEIGHTS
from tigranet.model import TIGraNet
from tigranet.notation import Layer

AUTO = "auto"
"""Start from the network of the package that suits the preset, if there is one."""
DEFAULT_STARTS = {
    "pyramid-small": "pyramid-small-cifar10",
    "pyramid-small-224": "pyramid-small-cifar10",
    "pyramid-large": "pyramid-cifar10",
}
"""By preset: the network of the package that a training starts from by default. They were trained on photographs, and
``results/fine-tuning.md`` has what they bring for images of other kinds."""
START_LIMITS = {"pyramid-small-cifar10": 3_000}
"""By network: the largest number of training images that it is the start for. With 5,000 images and more, random
weights were as good or better (``results/presets.md``). Networks without an entry have no limit."""
START_DATA = "cifar10"
"""The data set that these networks were trained on; trainings on it start from random weights."""


_IMAGE_MOMENTS = ("standardise_images.mean", "standardise_images.variance")


class Start(NamedTuple):
    """A network that a training starts from."""

    name: str
    """Its folder, or its name."""
    network: TIGraNet
    """The network."""


def default_start(
    preset: str, images: int, channels: int, boundary: Boundary, window: Window, margin: int, data: str = ""
) -> Start | None:
    """Return the network that a training starts from when the user names none.

    Args:
        preset: The preset that was chosen for the images.
        images: Number of training images.
        channels: Number of channels of the images.
        boundary: The boundary of the new network.
        window: Its window.
        margin: Its margin.
        data: The name of the data set to train on, if it has one.

    Returns:
        The network of :data:`DEFAULT_STARTS`, for these layers and this number of channels. None if there is none, if
        there are more images than :data:`START_LIMITS` allows, if the boundary is not free or there is a margin, and
        for :data:`START_DATA`.

    Example:
        >>> default_start("pyramid-small-224", 300, 3, "free", "none", 0).network.in_maps
        3
    """
    name = start_name(preset, images)
    if name is None or boundary != "free" or margin or data == START_DATA:
        return None
    network = TIGraNet.from_pretrained(name)
    if channels != network.in_maps and 1 not in (channels, network.in_maps):
        return None
    return Start(name, adapted(network, channels, Architecture.parse(preset), window))


def start_name(preset: str, images: int) -> str | None:
    """Return the name of the network of the package that suits a preset and a number of training images.

    Args:
        preset: The preset.
        images: Number of training images.

    Returns:
        The name. None if there is no such network, or if there are more images than :data:`START_LIMITS` allows.

    Example:
        >>> start_name("pyramid-small", 300), start_name("pyramid-small", 5_000)
        ('pyramid-small-cifar10', None)
    """
    name = DEFAULT_STARTS.get(preset)
    return name if name is not None and images <= START_LIMITS.get(name, math.inf) else None


def load_start(
    name: str | Path,
    architecture: Architecture | None = None,
    boundary: Boundary = "free",
    window: WindowOption = "auto",
    margin: int = 0,
) -> TIGraNet:
    """Load the network that a training starts from, and check that the other options do not contradict it.

    Args:
        name: The folder of a saved network, the name of a shipped one, or ``owner/name`` on the Hugging Face Hub.
        architecture: The architecture that the user asks for, if any.
        boundary: The boundary that the user asks for; the default leaves it to the network.
        window: The window that the user asks for; ``auto`` leaves it to the network.
        margin: The margin that the user asks for; 0 leaves it to the network.

    Returns:
        The network.

    Raises:
        FileNotFoundError: If there is no such network.
        ValueError: If an option differs from the network.
    """
    network = TIGraNet.from_pretrained(name)
    requested = (
        ("architecture", architecture, None, network.architecture),
        ("boundary", boundary, "free", network.boundary),
        ("window", window, "auto", network.window),
        ("margin", margin, 0, network.margin),
    )
    for option, value, default, actual in requested:
        if value not in (default, actual):
            raise ValueError(
                f"expected the {option} of '{name}', {actual}, or none at all, got {value}: a training that starts "
                f"from a network keeps its {option}"
            )
    return network


def adapted(
    network: TIGraNet, channels: int, architecture: Architecture | None = None, window: Window | None = None
) -> TIGraNet:
    r"""Return a copy of a network for images with another number of channels or of another size.

    A network that reads grey images becomes one that computes the grey version of its images first, by
    :func:`~tigranet.data.luminance.array_to_grey`: its filters :math:`w` become :math:`w_c = g_c w`, where :math:`g_c`
    is the weight of channel c. A network that reads RGB images becomes one that reads a grey image as an RGB image with
    three equal channels: :math:`w = \sum_c w_c`. If the network standardises each channel of its images, the channels
    get the mean and the variance of the grey images, or a grey image those of the average channel, so the second
    equality is approximate.

    Coarsenings have no weights, so the copy may have others.

    Args:
        network: The network. For another number of channels it starts with an MC or LC layer, and reads one or three.
        channels: Number of channels of the images.
        architecture: Layers of the copy, which may only have other coarsenings. The same layers by default.
        window: Window of the copy. The same window by default.

    Returns:
        The copy, or ``network`` itself if nothing changes.

    Raises:
        ValueError: If other layers differ, or if there is no rule for these numbers of channels.

    Example:
        >>> adapted(TIGraNet("MC[2,1]-S[1]", 2, in_maps=1), 3, Architecture.parse("MC[2,1]-D-S[1]")).in_maps
        3
    """
    architecture = architecture or network.architecture
    changes = {"in_maps": channels, "architecture": str(architecture), "window": window or network.window}
    if changes.items() <= network.config.items():
        return network
    layers, new_layers = (_numbered_layers(each) for each in (network.architecture, architecture))
    if [*layers.values()] != [*new_layers.values()]:
        raise ValueError(f"expected the layers of {network.architecture} with other coarsenings, got {architecture}")
    new_numbers = dict(zip(layers, new_layers, strict=True))
    state = {_renumber(name, new_numbers): tensor for name, tensor in network.state_dict().items()}
    if channels != network.in_maps:
        state |= _weights_for_channels(network, channels)
    copy = type(network)(**network.config | changes)
    copy.to(next(network.parameters()).device, next(network.parameters()).dtype)
    copy.load_state_dict(state)
    return copy.train(network.training)


def _numbered_layers(architecture: Architecture) -> dict[int, Layer]:
    """Return the layers other than coarsenings, by their position."""
    return {number: layer for number, layer in enumerate(architecture.layers) if not isinstance(layer, D)}


def _renumber(name: str, new_numbers: dict[int, int]) -> str:
    """Return the name of a parameter with the new position of its layer."""
    kind, number, *rest = name.split(".")
    return ".".join([kind, str(new_numbers[int(number)]), *rest]) if kind == "graph_layers" else name


def _weights_for_channels(network: TIGraNet, channels: int) -> dict[str, Tensor]:
    """Return the tensors of the state of a network that depend on the number of channels of the images."""
    first, state = network.architecture.layers[0], network.state_dict()
    if not (isinstance(first, (MC, LC)) and 1 in (channels, network.in_maps)):
        raise ValueError(
            "expected a network that starts with an MC or LC layer, and one channel in the network or in the images, "
            f"got {first} for {network.in_maps} channels, and images of {channels}"
        )
    name = "graph_layers.0.alpha" if isinstance(first, MC) else "graph_layers.0.weight"
    filters = state[name]
    moments = {moment: state[moment] for moment in _IMAGE_MOMENTS if moment in state}
    if network.in_maps > 1:
        means = {moment: tensor.mean(0, keepdim=True) for moment, tensor in moments.items()}
        return {name: filters.sum(1, keepdim=True)} | means
    shares = LUMINANCE_WEIGHTS if channels == 3 else (1 / channels,) * channels
    repeated = {moment: tensor.expand(channels).clone() for moment, tensor in moments.items()}
    return {name: torch.cat([share * filters for share in shares], dim=1)} | repeated
