"""Accuracy of a network on upright images, and on images that are rotated or shifted at random."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.data.augment.rigid import Interpolation, Isometry
from tigranet.data.batch_size import limit_batch_size
from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.batched_inference import apply_in_batches, module_device
from tigranet.evaluation.predictions import Transform, highest_classes, identity

MIN_MOVED_IMAGES = 1000
"""Small data sets are moved several times, with new random movements, until there are at least this many images."""
MAX_DRAWS = 10
"""Largest number of times that a data set is moved."""
CPU_BATCH_SIZE = 256
"""Batch size of small images on the CPU: small enough for its cache."""
GPU_BATCH_SIZE = 2048
"""Batch size of small images on other devices: large enough that launching kernels takes little of the time."""


class Accuracy(NamedTuple):
    """Mean and standard deviation of an accuracy over several random movements of the same images."""

    mean: float
    """In per cent."""
    std: float
    """In percentage points."""
    draws: int
    """How many times the images were moved."""

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.std:.1f}" if self.draws > 1 else f"{self.mean:.1f}"


def predict(
    module: nn.Module,
    images: Float[Tensor, "count maps height width"],
    batch_size: int | None = None,
    transform: Transform = identity,
) -> Int[Tensor, " count"]:
    """Return the class of the highest logit of each image.

    Args:
        module: The network, from images to logits (batch, classes). It computes on its own device, in evaluation mode.
        images: The images.
        batch_size: Batch size. None selects it for the device of the network and the size of the images.
        transform: A function that each batch is passed through first, on the device of the network.

    Returns:
        The class indices, on the CPU; :data:`~tigranet.evaluation.predictions.NO_ANSWER`, which counts as wrong, for
        an image with a logit that is NaN or infinite.
    """
    batches = images.split(batch_size or _batch_size(module_device(module), images))
    return _highest_classes(module, batches, transform)


def accuracy(module: nn.Module, data: LabelledImages, transform: Transform = identity) -> float:
    """Return the percentage of images that are classified correctly.

    Args:
        module: The network, from images to logits (batch, classes).
        data: The images and their labels.
        transform: A function that each batch is passed through first, on the device of the network.

    Returns:
        The accuracy in per cent.

    Raises:
        ValueError: If there are no images.
    """
    _check_images(data)
    return _percentage_correct(predict(module, data.images, transform=transform), data)


def moved_accuracy(
    module: nn.Module, data: LabelledImages, moved: Isometry, seed: int = 0, interpolation: Interpolation = "bilinear"
) -> Accuracy:
    """Measure the accuracy when every image is moved by its own random angle and shift.

    Images are moved batch by batch on the device of the network, so memory does not grow with the data set. The
    movements do not depend on the batch size. A data set of fewer than :data:`MIN_MOVED_IMAGES` images is moved up to
    :data:`MAX_DRAWS` times.

    Args:
        module: The network, from images to logits (batch, classes).
        data: The images and their labels.
        moved: The kind of movement.
        seed: Seed of the random movements.
        interpolation: How values between pixels are computed.

    Returns:
        Mean and standard deviation over the draws.

    Raises:
        ValueError: If there are no images.
    """
    _check_images(data)
    generator = torch.Generator().manual_seed(seed)
    draws = count_draws(len(data.labels), moved)
    accuracies = torch.tensor(
        [
            _percentage_correct(
                _highest_classes(module, moved_batches(module, data.images, moved, generator, interpolation)), data
            )
            for _ in range(draws)
        ],
        dtype=torch.float64,
    )
    return Accuracy(float(accuracies.mean()), float(accuracies.std(correction=0)), draws)


def _check_images(data: LabelledImages) -> None:
    if not len(data.labels):
        raise ValueError("expected at least 1 image to measure the accuracy on, got 0")


def count_draws(images: int, moved: Isometry) -> int:
    """Return how many times the images of a data set are moved.

    Args:
        images: Number of images, at least 1.
        moved: The kind of movement.

    Returns:
        As often as needed for :data:`MIN_MOVED_IMAGES`, at most :data:`MAX_DRAWS`; once if nothing is random.
    """
    is_random = moved.rotated or moved.max_shift
    return min(MAX_DRAWS, -(-MIN_MOVED_IMAGES // images)) if is_random else 1


def moved_batches(
    module: nn.Module,
    images: Float[Tensor, "count maps height width"],
    moved: Isometry,
    generator: torch.Generator,
    interpolation: Interpolation = "bilinear",
) -> Iterator[Float[Tensor, "batch maps height width"]]:
    """Move images batch by batch, by the movements that ``generator`` draws for all of them at once.

    Args:
        module: The network that the images are moved for; its device moves them.
        images: The images.
        moved: The kind of movement.
        generator: Draws the movements.
        interpolation: How values between pixels are computed.

    Yields:
        The moved images, on the device of the network.
    """
    device = module_device(module)
    movements = moved.draw(len(images), generator)
    size = _batch_size(device, images)
    for start in range(0, len(images), size):
        rows = slice(start, start + size)
        yield moved.apply(images[rows].to(device), movements.select(rows), interpolation)


def _highest_classes(module: nn.Module, batches: Iterable[Tensor], transform: Transform = identity) -> Tensor:
    return apply_in_batches(module, batches, lambda batch: highest_classes(module(transform(batch))))


def _percentage_correct(classes: Tensor, data: LabelledImages) -> float:
    return 100 * float((classes == data.labels).double().mean())


def _batch_size(device: torch.device, images: Tensor) -> int:
    return limit_batch_size(CPU_BATCH_SIZE if device.type == "cpu" else GPU_BATCH_SIZE, *images.shape[2:])
