"""Predictions of a network on images in memory: logits, classes and confidence."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.batched_inference import apply_in_batches

Transform = Callable[[Tensor], Tensor]
"""A function of a batch of images."""
NO_ANSWER = -1
"""In place of a class, if the network gives NaN or infinity for an image. It never equals a label."""
NO_ANSWER_NAME = "no answer"
"""What is shown as the name of :data:`NO_ANSWER`."""


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
    """Class indices, or :data:`NO_ANSWER`."""
    confidence: Float[Tensor, " count"]
    """Probability of the most probable class; 0 without an answer."""

    def count_correct(self, data: LabelledImages) -> int:
        """Count the images whose predicted class is their label.

        Args:
            data: The images and their labels.

        Returns:
            The number of correct predictions.
        """
        return int((self.classes == data.labels).sum())


def highest_classes(logits: Float[Tensor, "count classes"]) -> Int[Tensor, " count"]:
    """Return the class of the highest logit of each image.

    Args:
        logits: The logits.

    Returns:
        The class indices; :data:`NO_ANSWER` for an image with a logit that is NaN or infinite.

    Example:
        >>> import torch
        >>> highest_classes(torch.tensor([[1.0, 2.0], [float("nan"), 0.0], [float("inf"), 0.0]])).tolist()
        [1, -1, -1]
    """
    return logits.argmax(1).where(logits.isfinite().all(1), NO_ANSWER)


def names_of_answers(class_names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the classes in an order in which also :data:`NO_ANSWER` is the index of its name.

    Args:
        class_names: The names of the classes.

    Returns:
        The same names, followed by :data:`NO_ANSWER_NAME`.
    """
    return (*class_names, NO_ANSWER_NAME)


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
    logits = logits_of(module, images, transform, batch_size)
    classes = highest_classes(logits)
    return Predictions(classes, logits.softmax(1).amax(1).where(classes != NO_ANSWER, 0.0))
