"""Images and their hashes in a form that is the same for all quarter turns."""

from jaxtyping import Float
from torch import Tensor

from tigranet.canonical_rotation import canonical_rotation
from tigranet.data.leakage import hash_pictures

LEVELS = 65535
"""Pixels are rounded to multiples of 1 / LEVELS."""


def canonical_pictures(
    images: Float[Tensor, "batch maps rows columns"],
) -> Float[Tensor, "batch maps height width"]:
    """Round the pixels of images to 16 bits and bring each image to its canonical rotation.

    The result is exactly the same for an image and its quarter turns. Files that are resized after a quarter turn have
    other rounding errors; of these, only those at the limit between two levels of 16 bits remain.

    Args:
        images: Images in [0, 1].

    Returns:
        The rotated images, see :func:`~tigranet.canonical_rotation.canonical_rotation`.

    Example:
        >>> import torch
        >>> image = torch.rand(1, 1, 5, 5)
        >>> turned = image.rot90(1, (2, 3)) + 1e-9
        >>> torch.equal(canonical_pictures(turned), canonical_pictures(image))
        True
    """
    return canonical_rotation((images * LEVELS).round() / LEVELS).images


def picture_digests(pictures: Float[Tensor, "batch maps height width"]) -> list[int]:
    """Return a hash of each picture, which is equal for its quarter turns.

    Args:
        pictures: Images from :func:`canonical_pictures`, on any device.

    Returns:
        Whole numbers of 64 bits.

    Example:
        >>> import torch
        >>> image = torch.rand(1, 1, 5, 5)
        >>> turned = torch.cat([image, image.rot90(1, (2, 3)), image.flip(3)])
        >>> first, second, mirrored = picture_digests(canonical_pictures(turned))
        >>> first == second, first == mirrored
        (True, False)
    """
    return [int(text, 16) for text in hash_pictures(pictures.cpu())]
