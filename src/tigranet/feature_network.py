"""A network whose invariant features are useful without training, for a linear classifier or another estimator."""

import math
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.architecture import Architecture, D
from tigranet.choices import Boundary, Window
from tigranet.model import TIGraNet
from tigranet.notation import FC
from tigranet.pretrained import shipped

FEATURE_ARCHITECTURE = "LC[8,5]-D-MO[32]-LC[16,5]-D-MO[64]-S[3]"
"""Layers whose features, with random weights, are the input of a linear classifier. ``results/quick-features.csv``
compares them with those of other networks."""
MIN_COARSENED_SIDE = 8
"""Least side length in pixels of images that are coarsened twice."""
SMALL_SIDE = 64
"""Largest side length in pixels of images whose features take milliseconds without further coarsenings."""
CALIBRATION_IMAGES = 64
"""Number of images from which a new network estimates the moments of its maps."""


def feature_architecture(images: Float[Tensor, "count maps height width"]) -> Architecture:
    """Return the layers whose features are the default for some images.

    Args:
        images: The images.

    Returns:
        :data:`FEATURE_ARCHITECTURE`, without coarsenings for images that are too small for them.
    """
    architecture = Architecture.parse(FEATURE_ARCHITECTURE)
    if max(images.shape[2:]) >= MIN_COARSENED_SIDE:
        return architecture
    return Architecture(tuple(layer for layer in architecture.layers if not isinstance(layer, D)))


def fast_feature_architecture(images: Float[Tensor, "count maps height width"]) -> Architecture:
    """Return the layers of a first answer before a training, which takes seconds for large images, too.

    Args:
        images: The images.

    Returns:
        The layers of :func:`feature_architecture`. For images of more than :data:`SMALL_SIDE` pixels, more coarsenings
        after the first layer, which bring its maps to at most half of that.
    """
    first, *others = feature_architecture(images).layers
    more = max(0, math.ceil(math.log2(max(images.shape[2:]) / SMALL_SIDE)))
    return Architecture((first, *[D()] * more, *others))


def is_saved_network(name: str | Path) -> bool:
    """Return whether a name stands for a saved network, rather than for an architecture.

    Args:
        name: A folder, the name of a shipped network or of one on the Hugging Face Hub, a preset, or layers.

    Returns:
        Whether it is a folder, the name of a shipped network, or a path.

    Example:
        >>> is_saved_network("oriented-eth80"), is_saved_network("oriented"), is_saved_network("SC[2,2]-S[2]")
        (True, False, False)
    """
    return str(name) in shipped() or Path(name).is_dir() or ("/" in str(name) and "[" not in str(name))


def untrained_network(
    architecture: str | Architecture,
    images: Float[Tensor, "count maps height width"],
    num_classes: int = 1,
    *,
    boundary: Boundary = "free",
    window: Window = "none",
    margin: int = 0,
    **arguments: Any,
) -> TIGraNet:
    """Create a network with random weights, whose layers know the usual scale of their maps.

    Networks with group convolutions normalise their maps by the moments of the training batches. Here these are the
    moments of some of the images. Other networks are not changed by the images.

    Args:
        architecture: The layers.
        images: Images that the network will be used on.
        num_classes: Number of classes.
        boundary: The boundary of the grid.
        window: The window of the images.
        margin: Width in pixels of the margin of background that is added to the images.
        **arguments: Further arguments of :class:`TIGraNet`.

    Returns:
        The network, in evaluation mode. Its random weights are drawn from PyTorch's generator.
    """
    network = TIGraNet(
        architecture, num_classes, images.shape[1], boundary=boundary, window=window, margin=margin, **arguments
    )
    if network.architecture.has_group_convolutions and images.shape[2:].numel() * len(images) > 1:
        step = max(1, len(images) // CALIBRATION_IMAGES)  # images of one class often stand together
        with torch.no_grad():
            network.train().features(images[::step][:CALIBRATION_IMAGES])
    return network.eval()


def load_feature_network(
    name: str | Path, images: Float[Tensor, "count maps height width"], **arguments: Any
) -> TIGraNet:
    """Load a saved network for images that it may not have been trained on.

    Args:
        name: A folder, or the name of a network that is part of the package or on the Hub.
        images: The images.
        **arguments: Arguments of :class:`TIGraNet` that replace those of the saved network.

    Returns:
        The network, in evaluation mode.

    Raises:
        FileNotFoundError: If there is no such network.
        ValueError: If it reads another number of channels than the images have.
    """
    network = TIGraNet.from_pretrained(name, **arguments)
    check_channels(network, name, images)
    return network


def check_channels(network: TIGraNet, name: str | Path, images: Float[Tensor, "count maps height width"]) -> None:
    """Check that a saved network reads images with this number of channels.

    Args:
        network: The network.
        name: Its name, for the error message.
        images: The images.

    Raises:
        ValueError: If the numbers of channels differ.
    """
    if network.in_maps != (channels := images.shape[1]):
        remedy = "convert the images to grey" if network.in_maps == 1 else "read the images in colour"
        raise ValueError(
            f"expected images of {network.in_maps} channels for the network '{name}', got images of {channels}: "
            f"{remedy}, or start from another network"
        )


def with_linear_head(network: TIGraNet, num_classes: int, **arguments: Any) -> TIGraNet:
    """Copy the graph layers of a network to one that has a single linear layer after its statistics.

    Args:
        network: The network.
        num_classes: Number of classes of the new one.
        **arguments: Arguments of :class:`TIGraNet` that replace those of the network.

    Returns:
        The new network, in evaluation mode. It has the features of the old one; its last layer is random.

    Example:
        >>> str(with_linear_head(TIGraNet("SC[2,2]-S[2]-FC[9]", 3), 4).architecture)
        'SC[2,2]-S[2]'
    """
    layers = tuple(layer for layer in network.architecture.layers if not isinstance(layer, FC))
    config = network.config | {"architecture": Architecture(layers), "num_classes": num_classes, "class_names": None}
    linear = TIGraNet(**config | arguments)
    linear.standardise_images.load_state_dict(network.standardise_images.state_dict())
    linear.graph_layers.load_state_dict(network.graph_layers.state_dict())
    return linear.eval()
