"""How often a network is right, upright and turned."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tigranet.data.named import Labelled
from tigranet.data.transforms import Interpolation, random_angles, rotate


class Accuracy(NamedTuple):
    """Mean and standard deviation, in per cent, over draws of the test set."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.std:.1f}"


@torch.inference_mode()
def predict(module: nn.Module, images: Tensor, batch_size: int = 256) -> Tensor:
    """The class of each image."""
    return torch.cat([module(batch).argmax(1) for batch in images.split(batch_size)])


def accuracy(module: nn.Module, data: Labelled) -> float:
    """The part of the images whose class is right, in per cent."""
    return 100 * float((predict(module, data.images) == data.labels).double().mean())


def rotated_accuracy(
    module: nn.Module, data: Labelled, draws: int = 10, seed: int = 0, interpolation: Interpolation = "bilinear"
) -> Accuracy:
    """The accuracy with every image turned by its own random angle, over ``draws`` draws of the angles."""
    generator = torch.Generator().manual_seed(seed)
    turned = (rotate(data.images, random_angles(len(data.labels), generator), interpolation) for _ in range(draws))
    seen = torch.tensor([accuracy(module, Labelled(images, data.labels)) for images in turned], dtype=torch.float64)
    return Accuracy(float(seen.mean()), float(seen.std(correction=0)))
