"""What is lost when images are moved."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import nn

from tigranet.baselines.convnet import ConvNet
from tigranet.data.augment.rigid import Isometry
from tigranet.data.dataset import DataSet
from tigranet.evaluation.accuracy import Accuracy, accuracy, moved_accuracy
from tigranet.model import TIGraNet

QUARTER, NEAREST = "turned by 90 degrees", "rotated, pixels not interpolated"


@dataclass(frozen=True)
class Robustness:
    """Accuracies in per cent on the test images of a data set."""

    data: str
    images: int
    upright: float
    moved: dict[str, Accuracy]
    """By what was done to the images."""

    def drop(self, how: str) -> float:
        """How many points are lost, against upright images."""
        return self.upright - self.moved[how].mean

    def to_json(self) -> dict[str, Any]:
        """Plain values, the drops among them."""
        moved = {how: seen._asdict() | {"drop": self.drop(how)} for how, seen in self.moved.items()}
        return asdict(self) | {"moved": moved}


def check_compatible(net: TIGraNet | ConvNet, data: DataSet) -> None:
    """Whether ``net`` can have been trained on ``data``."""
    classes, maps = len(data.class_names), data.test.images.shape[1]
    if (net.num_classes, net.in_maps) != (classes, maps):
        raise ValueError(
            f"the model has {net.num_classes} classes and reads {net.in_maps} channels, "
            f"{data.name} has {classes} and {maps}: it was trained on other data"
        )
    known = net.config["class_names"] if isinstance(net, TIGraNet) else None
    if known and tuple(known) != tuple(data.class_names):
        raise ValueError(
            f"the model knows the classes {', '.join(known)}, {data.name} has {', '.join(data.class_names)}: "
            "it was trained on other data"
        )


def measure_robustness(net: TIGraNet | ConvNet, data: DataSet, seed: int = 0) -> Robustness:
    """:func:`robustness` of a network that is first checked to fit ``data``."""
    check_compatible(net, data)
    return robustness(net, data, seed)


def robustness(module: nn.Module, data: DataSet, seed: int = 0) -> Robustness:
    """Any network on the test images of ``data``: upright; turned by 90 degrees, which changes no pixel; rotated with
    and without interpolation; and shifted by as many pixels as the data set says, or an eighth of the image."""
    rotated = Isometry(rotated=True, padding=data.test_motion.padding)
    steps = data.test_motion.max_shift or max(1, min(data.test.images.shape[2:]) // 8)
    shifted = replace(data.test_motion, rotated=False, max_shift=steps)
    quarter = data.test._replace(images=torch.rot90(data.test.images, 1, (2, 3)))
    moved = {
        QUARTER: Accuracy(accuracy(module, quarter), 0.0, 1),
        str(rotated): moved_accuracy(module, data.test, rotated, seed),
        NEAREST: moved_accuracy(module, data.test, rotated, seed, "nearest"),
        str(shifted): moved_accuracy(module, data.test, shifted, seed),
    }
    return Robustness(data.name, len(data.test.labels), accuracy(module, data.test), moved)
