"""Logits that are the same for an image and its quarter turns to the last digit, for answers that use thresholds."""

from collections.abc import Callable
from copy import deepcopy

from jaxtyping import Float
from torch import Tensor, nn

from tigranet.canonical_rotation import canonical_rotation
from tigranet.model import TIGraNet


def double_head(net: TIGraNet) -> nn.Sequential:
    """Return the layers from the features to the logits, in double precision on the CPU.

    In single precision, the last digits of a matrix product depend on the number of rows, so the logits of an image
    would depend on the other images of its batch.

    Args:
        net: The network. It is copied, not changed.

    Returns:
        A copy of the standardisation and of the fully-connected layers, in evaluation mode.
    """
    return deepcopy(nn.Sequential(net.standardise, net.classifier)).double().cpu().eval()


def canonical_logits(
    net: TIGraNet,
) -> Callable[[Float[Tensor, "batch maps height width"]], Float[Tensor, "batch classes"]]:
    """Return a function that computes logits of images in their canonical rotation.

    Images that are quarter turns of each other, in one batch, have the same logits: the network reads the same pixels
    for each of them. See :func:`~tigranet.canonical_rotation.canonical_rotation`.

    Args:
        net: The network, on any device. Its weights at the time of this call are used.

    Returns:
        The function, from images on the device of the network to logits in double precision on the CPU.
    """
    head = double_head(net)

    def logits(images: Tensor) -> Tensor:
        return head(net.features(canonical_rotation(images).images).cpu().double())

    return logits
