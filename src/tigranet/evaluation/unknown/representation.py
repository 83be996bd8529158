"""What a network computes from images, as the input of detectors of unknown images."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tigranet.canonical_rotation import canonical_rotation
from tigranet.evaluation.canonical_logits import double_head
from tigranet.evaluation.unknown.contrast import image_contrast
from tigranet.model import TIGraNet


class Representation(NamedTuple):
    """The numbers of images at four depths of a network, and their contrast, in double precision on the CPU."""

    statistics: Float[Tensor, "count features"]
    """The invariant features as they are: mean and variance of each map at each order, one after the other."""
    features: Float[Tensor, "count features"]
    """The same features, standardised as the first fully-connected layer reads them."""
    hidden: Float[Tensor, "count hidden"]
    """The input of the last layer. In a network with a single fully-connected layer, these are the features."""
    logits: Float[Tensor, "count classes"]
    """The logits."""
    contrast: Float[Tensor, " count"]
    """The contrast of the image itself, see :func:`~tigranet.evaluation.unknown.contrast.image_contrast`."""

    def take(self, rows: Tensor) -> "Representation":
        """Select images.

        Args:
            rows: Their positions, or a mask.

        Returns:
            The selected images.
        """
        return Representation(*(part[rows] for part in self))

    def is_finite(self) -> Bool[Tensor, " count"]:
        """Return for each image whether all of its numbers are finite.

        Returns:
            A mask.
        """
        return self.statistics.isfinite().all(1) & self.logits.isfinite().all(1)


class KnownImages(NamedTuple):
    """Training images, from which a detector learns what images of known classes look like."""

    images: Representation
    """The images."""
    labels: Int[Tensor, " count"]
    """Their labels."""
    weight: Float[Tensor, "classes hidden"]
    """The weights of the last layer."""
    bias: Float[Tensor, " classes"]
    """The biases of the last layer."""


def measure_canonical(
    net: TIGraNet,
) -> Callable[[Float[Tensor, "batch maps height width"]], Float[Tensor, "batch columns"]]:
    """Return a function that computes the invariant features and the contrast of images in their canonical rotation.

    Images that are quarter turns of each other, in one batch, have the same numbers: the network reads the same pixels
    for each of them. See :func:`~tigranet.canonical_rotation.canonical_rotation`.

    Args:
        net: The network.

    Returns:
        The function, from images on the device of the network to one row per image in double precision on the CPU: the
        features, followed by the contrast.
    """

    def measurements(images: Tensor) -> Tensor:
        canonical = canonical_rotation(images).images
        columns = (net.features(canonical).cpu().double(), image_contrast(net, canonical)[:, None])
        return torch.cat(columns, dim=1)

    return measurements


def represent(net: TIGraNet) -> Callable[[Float[Tensor, "count columns"]], Representation]:
    """Return a function from what :func:`measure_canonical` computes to the input of detectors.

    Args:
        net: The network. Its weights at the time of this call are used.

    Returns:
        The function.
    """
    standardise, classifier = double_head(net).requires_grad_(False)
    assert isinstance(classifier, nn.Sequential)
    *inner, last = classifier

    def representation(measurements: Tensor) -> Representation:
        measurements = measurements.detach().cpu().double()
        statistics, contrast = measurements[:, :-1], measurements[:, -1]
        features = standardise(statistics)
        hidden = features
        for layer in inner:
            hidden = layer(hidden)
        return Representation(statistics, features, hidden, last(hidden), contrast)

    return representation


def known_images(
    net: TIGraNet, measurements: Float[Tensor, "count columns"], labels: Int[Tensor, " count"]
) -> KnownImages:
    """Return what a detector learns from.

    Args:
        net: The network.
        measurements: What :func:`measure_canonical` computes of its training images. Images with a number that is not
            finite are left out.
        labels: Their labels.

    Returns:
        The images, with the last layer of the network.
    """
    images = represent(net)(measurements)
    last = net.classifier[-1]
    assert isinstance(last, nn.Linear)
    weight, bias = (parameter.detach().cpu().double() for parameter in (last.weight, last.bias))
    return KnownImages(images.take(images.is_finite()), labels.cpu()[images.is_finite()], weight, bias)
