"""A saved network, or a new one of an architecture that is calibrated on training images."""

from pathlib import Path

import torch

from tigranet.architecture import PRESETS
from tigranet.data import DataSet
from tigranet.model import TIGraNet

CALIBRATION_IMAGES = 256
"""Number of training images that calibrate the standardisation of a new network."""
CLASSES_WITHOUT_DATA = 9
"""Number of classes of a new network when there are no data: that of the paper's larger experiments."""


def is_architecture(model: str | Path) -> bool:
    """Return whether ``model`` is an architecture rather than a saved network.

    Args:
        model: A folder, the name of a saved network, a preset, or layers.

    Returns:
        Whether it is a preset or layers such as ``SC[3,3]-S[10]``, and not a folder.

    Example:
        >>> is_architecture("oriented"), is_architecture("SC[2,2]-S[2]"), is_architecture("model/")
        (True, True, False)
    """
    return not Path(model).is_dir() and (str(model) in PRESETS or "[" in str(model))


def load_network(model: str | Path, data: DataSet | None = None) -> TIGraNet:
    """Load a saved network, or create one of an architecture.

    A new network is not trained, but its layers estimate the usual scale of maps and statistics from some training
    images of ``data``, as they do during training.

    Args:
        model: The folder or name of a saved network, a preset, or layers such as ``SC[3,3]-S[10]``.
        data: The data that the network will be used on.

    Returns:
        The network: a saved one in evaluation mode, a new one in training mode.

    Raises:
        ValueError: If a saved network reads another number of channels than the images of ``data`` have.
    """
    if not is_architecture(model):
        network = TIGraNet.from_pretrained(model)
        if data is not None and network.in_maps != (channels := data.train.images.shape[1]):
            raise ValueError(
                f"'{model}' reads images of {network.in_maps} channels, those of {data.name} have {channels}: "
                "compare networks that were all trained in colour, or all in grey"
            )
        return network
    if data is None:
        return TIGraNet(str(model), num_classes=CLASSES_WITHOUT_DATA)
    images = data.train.images[:CALIBRATION_IMAGES]
    network = TIGraNet(str(model), len(data.class_names), images.shape[1])
    with torch.no_grad():
        network(images)
    return network
