"""Images that a training cannot use, because they hold NaN or infinity."""

import warnings
from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from tigranet.data.batch_size import limit_batch_size
from tigranet.data.dataset import LabelledImages
from tigranet.data.shards.stored_images import StoredImages

CHECKED_TOGETHER = 1024
"""Number of small images that are checked at a time, so that memory does not grow with their number."""
MAX_LISTED = 5
"""Largest number of images that a message lists."""


class ValidationImagesWarning(UserWarning):
    """Validation images that cannot be used. The training continues without them."""


def list_positions(positions: Sequence[int]) -> str:
    """Write positions as text, at most :data:`MAX_LISTED` of them.

    Args:
        positions: Positions of images in a data set.

    Returns:
        The text.

    Example:
        >>> list_positions([3]), list_positions([1, 2, 3, 4, 5, 6, 7])
        ('3', '1, 2, 3, 4, 5 and 2 more')
    """
    listed = ", ".join(map(str, positions[:MAX_LISTED]))
    return listed if len(positions) <= MAX_LISTED else f"{listed} and {len(positions) - MAX_LISTED} more"


def check_training_images(train: LabelledImages) -> None:
    """Check that all pixels of the training images are finite.

    Args:
        train: The training images.

    Raises:
        ValueError: If a pixel is NaN or infinite. The message has the positions of the images and of one pixel.
    """
    bad = _not_finite(train).tolist()
    if not bad:
        return
    image = train.images[bad[0]]
    channel, row, column = (~image.isfinite()).nonzero()[0].tolist()
    value = image[channel, row, column].item()
    raise ValueError(
        f"expected finite training images, got NaN or infinity in {len(bad)} of {len(train.images)} images, "
        f"at position {list_positions(bad)} (image {bad[0]}: {value} in channel {channel}, row {row}, "
        f"column {column}): remove or correct them"
    )


def finite_validation_images(validation: LabelledImages) -> LabelledImages:
    """Leave out the validation images that hold NaN or infinity, with a warning that names them.

    Args:
        validation: The validation images.

    Returns:
        The images whose pixels are all finite: ``validation`` itself if there are no others.

    Raises:
        ValueError: If no image remains.
    """
    bad = _not_finite(validation)
    if not len(bad):
        return validation
    count = len(validation.images)
    if len(bad) == count:
        raise ValueError(f"all {count} validation images hold NaN or infinity: correct them, or train without them")
    warnings.warn(
        f"{len(bad)} of {count} validation images hold NaN or infinity and are left out, "
        f"at position {list_positions(bad.tolist())}",
        ValidationImagesWarning,
        stacklevel=3,
    )
    is_finite = torch.ones(count, dtype=torch.bool)
    is_finite[bad] = False
    return validation.take(is_finite.nonzero().flatten().to(validation.labels.device))


def _not_finite(data: LabelledImages) -> Int[Tensor, " images"]:
    """Return the positions of the images that hold NaN or infinity, on the CPU. Shards have none of them."""
    if isinstance(data.images, StoredImages):
        return torch.zeros(0, dtype=torch.int64)
    size = limit_batch_size(CHECKED_TOGETHER, *data.images.shape[2:])
    flags = [images.isfinite().flatten(1).all(1).cpu() for images in data.images.split(size)]
    return (~torch.cat(flags)).nonzero().flatten()
