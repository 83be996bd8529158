"""Hashes by which images are recognised."""

import hashlib

import numpy as np
from jaxtyping import Float
from torch import Tensor

HASHED_TOGETHER = 64
"""Number of images that are read at a time, if they are in files."""


def content_hash(pixels: Float[Tensor, "*batch maps height width"]) -> str:
    """Return a content hash of one image or of a batch. Equal pixels give equal hashes.

    Args:
        pixels: One image, or several, whose order matters.

    Returns:
        The hash as 16 hexadecimal digits.

    Example:
        >>> import torch
        >>> black, white, night = map(content_hash, torch.tensor([0.0, 1.0, 0.0]).reshape(3, 1, 1, 1))
        >>> black == night, black == white
        (True, False)
    """
    digest = hashlib.blake2b(digest_size=8)
    for batch in pixels.split(HASHED_TOGETHER) if pixels.ndim == 4 else (pixels,):
        digest.update(np.ascontiguousarray(batch.numpy()).data)
    return digest.hexdigest()


def picture_hash(image: Float[Tensor, "maps height width"]) -> str:
    """Return a hash of a picture, which does not depend on how the picture was saved.

    Pixels are rounded to 16 bits before they are hashed. A grey picture that was saved in colour then has the hash of
    the original, although its luminance differs in the last digit.

    Args:
        image: The image, in [0, 1].

    Returns:
        The hash as 16 hexadecimal digits, different from that of :func:`content_hash`.
    """
    picture = np.rint(image.numpy() * np.float32(65535)).astype(np.uint16)
    return hashlib.blake2b(picture.tobytes(), digest_size=8).hexdigest()
