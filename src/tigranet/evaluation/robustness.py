"""Robustness: how much accuracy a network loses when the test images are rotated or shifted."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from tigranet.baselines.convnet import ConvNet
from tigranet.data.augment.rigid import Isometry
from tigranet.data.dataset import DataSet
from tigranet.evaluation.accuracy import Accuracy, accuracy, moved_accuracy, predict
from tigranet.evaluation.accuracy_interval import AccuracyInterval, accuracy_interval
from tigranet.evaluation.predictions import NO_ANSWER
from tigranet.model import TIGraNet

QUARTER, NEAREST = "turned by 90 degrees", "rotated, pixels not interpolated"
"""Names of two movements, as they are written to results."""


@dataclass(frozen=True)
class Robustness:
    """Accuracies on the test images of a data set, as they are and moved, in per cent."""

    data: str
    """Name of the data set."""
    images: int
    """Number of test images."""
    upright: float
    """Accuracy on the images as they are."""
    moved: dict[str, Accuracy]
    """Accuracy by kind of movement."""
    unanswered: int = 0
    """Number of unmoved images for which the network gives NaN or infinity. They count as wrong."""
    unmoved: str = "upright"
    """What the unmoved images are called, see :attr:`tigranet.data.DataSet.unmoved`."""

    def drop(self, how: str) -> float:
        """Return the loss of accuracy from unmoved to moved images.

        Args:
            how: The kind of movement, one of the keys of ``moved``.

        Returns:
            The difference in percentage points.
        """
        return self.upright - self.moved[how].mean

    def interval(self, how: str | None = None) -> AccuracyInterval:
        """Return the 95 % confidence interval of an accuracy, which counts test images.

        Args:
            how: The kind of movement, one of the keys of ``moved``; None for unmoved images.

        Returns:
            The interval. Several random movements of one image count once.
        """
        return accuracy_interval(self.upright if how is None else self.moved[how].mean, self.images)

    def to_json(self) -> dict[str, Any]:
        """Return all numbers, including the drops and the intervals, as values that can be written as JSON.

        Returns:
            The fields by name.
        """
        moved = {
            how: result._asdict() | {"drop": self.drop(how), "interval": self.interval(how).to_json()}
            for how, result in self.moved.items()
        }
        return asdict(self) | {"interval": self.interval().to_json(), "moved": moved}


def check_compatible(net: TIGraNet | ConvNet, data: DataSet) -> None:
    """Check that a network has the classes and the channels of a data set.

    Args:
        net: The network.
        data: The data set.

    Raises:
        ValueError: If the number or the names of the classes, or the number of channels, differ.
    """
    classes, maps = len(data.class_names), data.test.images.shape[1]
    if (net.num_classes, net.in_maps) != (classes, maps):
        raise ValueError(
            f"the model has {net.num_classes} classes and reads {net.in_maps} channels, "
            f"{data.name} has {classes} and {maps}: it was trained on other data"
        )
    names = net.config["class_names"] if isinstance(net, TIGraNet) else None
    if names and tuple(names) != tuple(data.class_names):
        raise ValueError(
            f"the model knows the classes {', '.join(names)}, {data.name} has {', '.join(data.class_names)}: "
            "it was trained on other data"
        )


def measure_robustness(net: TIGraNet | ConvNet, data: DataSet, seed: int = 0) -> Robustness:
    """Check that a network fits a data set, and measure its :func:`robustness`.

    Args:
        net: The network.
        data: The data set.
        seed: Seed of the random movements.

    Returns:
        The accuracies.

    Raises:
        ValueError: If the network does not fit the data set, or if there are no test images.
    """
    check_compatible(net, data)
    return robustness(net, data, seed)


def robustness(module: nn.Module, data: DataSet, seed: int = 0) -> Robustness:
    """Measure the accuracy of any network on test images as they are, and moved.

    The movements are: a rotation by 90 degrees, which changes no pixel values; rotations by random angles with bilinear
    interpolation and without interpolation; and random shifts of at most the distance that the data set specifies, or
    an eighth of the image. Images are moved batch by batch.

    Args:
        module: The network, from images to logits (batch, classes).
        data: The data set.
        seed: Seed of the random movements.

    Returns:
        The accuracies.

    Raises:
        ValueError: If there are no test images.
    """
    test = data.require_test_images()
    rotation = Isometry(rotated=True, padding=data.test_motion.padding)
    max_shift = data.test_motion.max_shift or max(1, min(test.images.shape[2:]) // 8)
    shift = replace(data.test_motion, rotated=False, max_shift=max_shift)
    moved = {
        QUARTER: Accuracy(accuracy(module, test, _quarter_turn), 0.0, 1),
        str(rotation): moved_accuracy(module, test, rotation, seed),
        NEAREST: moved_accuracy(module, test, rotation, seed, "nearest"),
        str(shift): moved_accuracy(module, test, shift, seed),
    }
    classes = predict(module, test.images)
    upright = 100 * float((classes == test.labels).double().mean())
    unanswered = int((classes == NO_ANSWER).sum())
    return Robustness(data.name, len(test.labels), upright, moved, unanswered, data.unmoved)


def _quarter_turn(images: Tensor) -> Tensor:
    return torch.rot90(images, 1, (2, 3))
