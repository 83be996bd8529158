"""Logits of test images as they are, rotated by a quarter turn, and rotated by random angles."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.data.augment.rigid import Isometry
from tigranet.data.dataset import DataSet
from tigranet.evaluation.accuracy import count_draws, moved_batches
from tigranet.evaluation.batched_inference import apply_in_batches
from tigranet.evaluation.predictions import Transform, identity, logits_of
from tigranet.evaluation.robustness import QUARTER

UPRIGHT = "upright"
"""Name of the images as they are."""


class LabelledLogits(NamedTuple):
    """Logits with the labels of their images."""

    logits: Float[Tensor, "count classes"]
    """On the CPU."""
    labels: Int[Tensor, " count"]
    """The true classes."""


def rotated_logits(
    module: nn.Module, data: DataSet, seed: int = 0, transform: Transform = identity
) -> dict[str, LabelledLogits]:
    """Compute the logits of upright and of rotated test images.

    Args:
        module: The network, from images to logits. It computes on its own device, in evaluation mode.
        data: The data set.
        seed: Seed of the random angles.
        transform: A function that the images are passed through after the rotation.

    Returns:
        The logits by the name of the rotation: upright, rotated by 90 degrees, and rotated by random angles. A small
        data set is rotated several times, and the logits of all draws follow one another.

    Raises:
        ValueError: If there are no test images.
    """
    test = data.require_test_images()
    rotation = Isometry(rotated=True, padding=data.test_motion.padding)
    generator = torch.Generator().manual_seed(seed)
    draws = count_draws(len(test.labels), rotation)

    def rotated_batches() -> Iterator[Tensor]:
        for _ in range(draws):
            yield from moved_batches(module, test.images, rotation, generator)

    return {
        UPRIGHT: LabelledLogits(logits_of(module, test.images, transform), test.labels),
        QUARTER: LabelledLogits(
            logits_of(module, test.images, lambda images: transform(torch.rot90(images, 1, (2, 3)))), test.labels
        ),
        str(rotation): LabelledLogits(
            apply_in_batches(module, rotated_batches(), lambda images: module(transform(images))),
            test.labels.repeat(draws),
        ),
    }
