"""The background of an image: the value of most of its border pixels."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tigranet.image_border import border_of


class Background(NamedTuple):
    """The background of each image of a batch. It is the same for all rows and columns of an image."""

    value: Float[Tensor, "batch maps 1 1"]
    """Median of the border pixels of each channel."""
    is_uniform: Bool[Tensor, "batch 1 1 1"]
    """Whether more than half of the border pixels have exactly this value in all channels. An image without this
    property, such as a photograph that fills its frame, has no background."""

    def or_else(self, values: Float[Tensor, "batch maps height width"]) -> Float[Tensor, "batch maps height width"]:
        """Return the background, and other values for images that have none.

        Args:
            values: The other values.

        Returns:
            The background in the shape of ``values``, or ``values`` for images without a background.
        """
        return torch.where(self.is_uniform, self.value, values)


def background_of(images: Float[Tensor, "batch maps height width"]) -> Background:
    """Find the background of each image.

    Inverting an image, or any other linear change of its values, changes the background in the same way.

    Args:
        images: The images.

    Returns:
        The background of each image. It stays on the device and never waits for it, so a CUDA graph can record it.

    Example:
        >>> image = torch.ones(1, 1, 4, 4)
        >>> image[..., 1:3, 1:] = 0  # touches the right border
        >>> background = background_of(image)
        >>> background.value.item(), background.is_uniform.item()
        (1.0, True)
    """
    border = border_of(images)
    ordered = border.sort(-1).values
    middle = ordered.shape[-1] // 2
    # The mean of both middle values, because the lower one alone would become the upper one in an inverted image.
    value = (ordered[..., ~middle] + ordered[..., middle]) / 2
    matches = (border == value[..., None]).all(1)
    is_uniform = 2 * matches.sum(-1) > border.shape[-1]
    return Background(value[..., None, None], is_uniform[:, None, None, None])
