"""Predictions of a network on images in memory: logits, classes and confidence."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.batched_inference import apply_in_batches

Transform = Callable[[Tensor], Tensor]
"""A function of a batch of images."""


def identity(images: Tensor) -> Tensor:
    """Return the images unchanged.

    Args:
        images: A batch of images.

    Returns:
        The same tensor.
    """
    return images


class Predictions(NamedTuple):
    """The most probable class of each image, and its probability."""

    classes: Int[Tensor, " count"]
    """Class indices."""
    confidence: Float[Tensor, " count"]
    """Probability of the most probable class."""

    def count_correct(self, data: LabelledImages) -> int:
        """Count the images whose predicted class is their label.

        Args:
            data: The images and their labels.

        Returns:
            The number of correct predictions.
        """
        return int((self.classes == data.labels).sum())


def logits_of(
    module: nn.Module,
    images: Float[Tensor, "count maps height width"],
    transform: Transform = identity,
    batch_size: int = 64,
) -> Float[Tensor, "count classes"]:
    """Return the logits of transformed images.

    Args:
        module: The network, from images to logits. It computes on its own device, in evaluation mode.
        images: The images.
        transform: A function that each batch is passed through first, on the device of the network.
        batch_size: Batch size.

    Returns:
        The logits, on the CPU.
    """
    return apply_in_batches(module, images.split(batch_size), lambda batch: module(transform(batch)))


def predict_classes(
    module: nn.Module,
    images: Float[Tensor, "count maps height width"],
    transform: Transform = identity,
    batch_size: int = 64,
) -> Predictions:
    """Return the most probable class of transformed images, with its probability.

    Args:
        module: The network, from images to logits. It computes on its own device, in evaluation mode.
        images: The images.
        transform: A function that each batch is passed through first, on the device of the network.
        batch_size: Batch size.

    Returns:
        The predictions, on the CPU.
    """
    highest = logits_of(module, images, transform, batch_size).softmax(1).max(1)
    return Predictions(highest.indices, highest.values)
