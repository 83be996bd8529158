"""What a network answers, and how sure it is."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.data.dataset import LabelledImages

Transform = Callable[[Tensor], Tensor]
"""A function of a batch of images."""


def as_it_is(images: Tensor) -> Tensor:
    """The transform that does nothing."""
    return images


class Predictions(NamedTuple):
    """The most probable class of each image, and its probability: the confidence."""

    classes: Int[Tensor, " count"]
    confidence: Float[Tensor, " count"]

    def right(self, data: LabelledImages) -> int:
        """How many are the class of their image."""
        return int((self.classes == data.labels).sum())


@torch.inference_mode()
def logits_of(
    module: nn.Module,
    images: Float[Tensor, "count maps height width"],
    transform: Transform = as_it_is,
    batch_size: int = 64,
) -> Float[Tensor, "count classes"]:
    """What ``module`` says of transformed images, a batch at a time, computed where the module is."""
    device = next((parameter.device for parameter in module.parameters()), images.device)
    training = module.training
    try:
        module.eval()
        return torch.cat([module(transform(batch.to(device))).cpu() for batch in images.split(batch_size)])
    finally:
        module.train(training)


def predict_classes(
    module: nn.Module,
    images: Float[Tensor, "count maps height width"],
    transform: Transform = as_it_is,
    batch_size: int = 64,
) -> Predictions:
    """The answers of ``module`` to transformed images."""
    seen = logits_of(module, images, transform, batch_size).softmax(1).max(1)
    return Predictions(seen.indices, seen.values)
