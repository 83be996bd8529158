"""Accuracy at fixed angles of rotation, by the protocol of published results on rotated photographs."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.data.augment.rigid import rotate
from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.accuracy import accuracy
from tigranet.matrix_precision import matrix_precision

PROTOCOL_ANGLES = tuple(range(0, 361, 10))
"""The 37 angles of the protocol, in degrees. The upright image counts twice, at 0 and at 360 degrees."""
DIAGONAL_ANGLE = 45
"""The angle that is farthest from all quarter turns. It is reported, but it is not part of the protocol."""


@dataclass(frozen=True)
class RotationAccuracies:
    """Accuracies in per cent with all images rotated by the same angle."""

    by_angle: dict[int, float]
    """Accuracy at each of :data:`PROTOCOL_ANGLES`."""
    at_45: float
    """Accuracy at 45 degrees."""

    @property
    def mean(self) -> float:
        """The result of the protocol: the mean over its 37 angles."""
        return sum(self.by_angle.values()) / len(self.by_angle)

    @property
    def upright(self) -> float:
        """Accuracy on the images as they are."""
        return self.by_angle[0]

    @property
    def at_90(self) -> float:
        """Accuracy at 90 degrees."""
        return self.by_angle[90]

    def to_json(self) -> dict[str, Any]:
        """Return all numbers as values that can be written as JSON.

        Returns:
            The fields and properties by name.
        """
        return {
            "mean": self.mean,
            "upright": self.upright,
            "at_45": self.at_45,
            "at_90": self.at_90,
            "by_angle": {str(angle): accuracy for angle, accuracy in self.by_angle.items()},
        }


def rotation_protocol(
    module: nn.Module,
    images: Float[Tensor, "count maps height width"],
    labels: Int[Tensor, " count"],
    mean: Float[Tensor, " channels"],
) -> RotationAccuracies:
    """Measure the accuracy with all images rotated by 0, 10, ..., 360 degrees.

    In the published protocol, an image x is normalised with the mean and the standard deviation of the training
    images, rotated by bilinear interpolation on its own canvas with zeros outside, and classified. Rotation is linear,
    so for a network that takes images in [0, 1] this is rotate(x - mean) + mean: the mean colour enters at the
    corners, see :func:`rotate_with_colour`.

    Quarter turns are measured in full single precision, so that nothing but the network decides whether they are equal
    to the upright images. At other angles a GPU may round to TF32.

    Args:
        module: The network, from images in [0, 1] to logits (batch, classes).
        images: The test images, upright.
        labels: Their labels.
        mean: Mean colour of the training images, see :func:`mean_colour`.

    Returns:
        The accuracies.

    Raises:
        ValueError: If there are no images, or if ``mean`` does not have one value per channel.
    """
    if mean.shape != images.shape[1:2]:
        raise ValueError(
            f"expected a mean colour of {images.shape[1]} values, one per channel of the images, "
            f"got shape {tuple(mean.shape)}"
        )
    data = LabelledImages(images, labels)

    def accuracy_at(degrees: int) -> float:
        with matrix_precision(tf32=degrees % 90 != 0):
            return accuracy(module, data, partial(rotate_with_colour, degrees=float(degrees), colour=mean))

    by_angle = {angle: accuracy_at(angle) for angle in PROTOCOL_ANGLES if angle < 360}
    return RotationAccuracies(by_angle | {360: by_angle[0]}, accuracy_at(DIAGONAL_ANGLE))


def rotate_with_colour(
    images: Float[Tensor, "batch maps height width"], degrees: float, colour: Float[Tensor, " maps"]
) -> Float[Tensor, "batch maps height width"]:
    """Rotate all images counter-clockwise by the same angle, with one colour outside.

    Other angles than multiples of 90 degrees interpolate. At a multiple of 90 degrees, the bilinear interpolation of a
    square image reads exactly at pixels, up to the rounding of their positions. There the pixels are permuted instead,
    which is the same without rounding errors, so an exactly invariant network has exactly its upright accuracy.

    Args:
        images: The images.
        degrees: The angle.
        colour: The colour that enters from outside the image.

    Returns:
        The rotated images, of the same size.

    Example:
        >>> rotate_with_colour(torch.zeros(1, 1, 5, 5), 45.0, torch.tensor([1.0])).squeeze()[0]
        tensor([0.8284, 0.1213, 0.0000, 0.1213, 0.8284])
    """
    height, width = images.shape[2:]
    quarters, rest = divmod(degrees, 90)
    if rest == 0 and (height == width or quarters % 2 == 0):
        return torch.rot90(images, int(quarters) % 4, (2, 3))
    offset = colour.to(images)[:, None, None]
    return rotate(images - offset, torch.full((len(images),), degrees)) + offset


def mean_colour(images: Float[Tensor, "count maps height width"]) -> Float[Tensor, " maps"]:
    """Return the mean of every channel over all images and pixels.

    Args:
        images: The training images.

    Returns:
        One value per channel.

    Example:
        >>> mean_colour(torch.tensor([0.0, 1.0]).reshape(1, 2, 1, 1).expand(3, 2, 4, 4))
        tensor([0., 1.])
    """
    return images.mean((0, 2, 3), dtype=torch.float64).to(images.dtype)
