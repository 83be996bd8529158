"""The batch size for images of a given size, so that the memory of a network does not grow with it."""

import math

REFERENCE_SIDE = 64
"""Side length in pixels up to which a batch has its full number of images."""


def limit_batch_size(batch_size: int, *sides: int) -> int:
    """Reduce a batch size for large images.

    The memory of a network is proportional to the number of pixels of a batch. It is at most that of ``batch_size``
    images of 64x64 pixels, unless a single image has more pixels.

    Args:
        batch_size: Number of small images per batch.
        *sides: Height and width of the images in pixels.

    Returns:
        The number of images per batch, at least 1 and at most ``batch_size``.

    Example:
        >>> [limit_batch_size(256, side, side) for side in (28, 64, 128, 224, 2048)]
        [256, 256, 64, 20, 1]
    """
    return max(1, min(batch_size, batch_size * REFERENCE_SIDE**2 // max(1, math.prod(sides))))
