"""Colour images to grey."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

LUMINANCE_WEIGHTS = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in the luminance, from ITU-R BT.601."""


def luminance(images: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch 1 height width"]:
    r"""Return the luminance of colour images.

    .. math:: Y = 0.299 \, R + 0.587 \, G + 0.114 \, B

    Args:
        images: Images with the channels red, green and blue.

    Returns:
        Images with one channel.
    """
    return torch.einsum("bchw,c->bhw", images, images.new_tensor(LUMINANCE_WEIGHTS)).unsqueeze(1)


def array_to_grey(pixels: Float[np.ndarray, "*image channels"]) -> Float[np.ndarray, "*image 1"]:
    """Reduce the channels of an image, or of a batch of images, to one.

    Args:
        pixels: One channel, which is returned as it is; or red, green and blue, which become their luminance; or any
            other number of channels, which become their mean.

    Returns:
        An array of the same shape, except that the last axis has length 1.
    """
    if pixels.shape[-1] == 1:
        return pixels
    if pixels.shape[-1] == 3:
        return pixels @ np.array(LUMINANCE_WEIGHTS, dtype=np.float32)[:, None]
    return pixels.mean(-1, keepdims=True)


def fit_channels(image: Float[Tensor, "channels height width"], channels: int) -> Float[Tensor, "_ height width"]:
    """Repeat a grey image in red, green and blue for a network that reads colour images.

    Args:
        image: An image.
        channels: Number of channels that the network reads.

    Returns:
        The same image in three channels if it has one and three are needed, otherwise ``image`` itself.

    Example:
        >>> [fit_channels(torch.zeros(count, 4, 4), 3).shape[0] for count in (1, 3, 4)]
        [3, 3, 4]
    """
    return image.expand(3, -1, -1) if channels == 3 and image.shape[0] == 1 else image
