"""Read the images of a training batch: from memory, or from shards while the previous batch is computed."""

import torch
from jaxtyping import Int
from torch import Tensor

from tigranet.data.dataset import LabelledImages
from tigranet.data.shards.stored_images import StoredImages


def read_batch(
    data: LabelledImages, indices: Int[Tensor, " batch"], rows: Int[Tensor, " share"] | None = None
) -> LabelledImages:
    """Return the images of a batch with their labels and weights.

    Args:
        data: The training images.
        indices: The indices of the images.
        rows: The rows of the batch that this process works on. Other images are not read from shards, and are black.
            None stands for all rows.

    Returns:
        The batch, where the images are.
    """
    if not isinstance(data.images, StoredImages) or rows is None:
        return data.take(indices)
    images = torch.zeros(len(indices), *data.images.shape[1:])
    if len(rows):
        images[rows] = data.images[indices[rows]]
    weights = None if data.weights is None else data.weights[indices]
    return LabelledImages(images, data.labels[indices], weights)


def read_ahead(data: LabelledImages, indices: Int[Tensor, " batch"], rows: Int[Tensor, " share"] | None = None) -> None:
    """Begin to read the next batch from shards in the background. Images in memory need nothing.

    Args:
        data: The training images.
        indices: The indices of the images.
        rows: As for :func:`read_batch`.
    """
    if isinstance(data.images, StoredImages):
        needed = indices if rows is None else indices[rows]
        if len(needed):
            data.images.read_ahead(needed)
