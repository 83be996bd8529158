"""Logits of test images as they are, rotated by a quarter turn, and rotated by random angles."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.data.augment.rigid import Isometry
from tigranet.data.dataset import DataSet
from tigranet.evaluation.accuracy import count_draws, moved_batches
from tigranet.evaluation.batched_inference import apply_in_batches
from tigranet.evaluation.robustness import QUARTER

UPRIGHT = "upright"
"""Name of the images as they are."""
BATCH_SIZE = 64
"""Batch size of images that are not rotated by random angles."""


class LabelledLogits(NamedTuple):
    """Logits with the labels of their images."""

    logits: Float[Tensor, "count classes"]
    """On the CPU."""
    labels: Int[Tensor, " count"]
    """The true classes."""


def rotated_logits(
    module: nn.Module, data: DataSet, seed: int = 0, function: Callable[[Tensor], Tensor] | None = None
) -> dict[str, LabelledLogits]:
    """Compute the logits of upright and of rotated test images.

    Args:
        module: The network, from images to logits. It computes on its own device, in evaluation mode.
        data: The data set.
        seed: Seed of the random angles.
        function: A function that uses the network, from images to logits. None applies the network itself.

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

    def logits_of(batches: Iterable[Tensor], repeats: int = 1) -> LabelledLogits:
        return LabelledLogits(apply_in_batches(module, batches, function), test.labels.repeat(repeats))

    def rotated_batches() -> Iterator[Tensor]:
        for _ in range(draws):
            yield from moved_batches(module, test.images, rotation, generator)

    upright = test.images.split(BATCH_SIZE)
    return {
        UPRIGHT: logits_of(upright),
        QUARTER: logits_of(torch.rot90(batch, 1, (2, 3)) for batch in upright),
        str(rotation): logits_of(rotated_batches(), draws),
    }
