"""A margin of background around images."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tigranet.image_border import border_of


def add_margin(
    images: Float[Tensor, "batch maps height width"], margin: int
) -> Float[Tensor, "batch maps padded_height padded_width"]:
    """Add pixels of background on each side of images.

    The background of a channel is the median of its border pixels, each of which counts once. If their number is even,
    it is the lower one of the two middle values. A quarter turn or a reflection of the image does not change it, and an
    object on a plain background does not change it either, as long as it covers less than half of the border.

    The function has no operation whose shape depends on the values. It does not wait for the device, so a CUDA graph
    can record it, and exporters can trace it. The gradient of the margin goes to the border pixels that have the value
    of the median.

    Args:
        images: The images.
        margin: Number of pixels to add on each side.

    Returns:
        The padded images.

    Shape:
        ``(batch, maps, height, width) -> (batch, maps, height + 2 * margin, width + 2 * margin)``

    Example:
        >>> add_margin(torch.tensor([[[[3.0, 5.0, 3.0]]]]), 1).tolist()
        [[[[3.0, 3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 5.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0, 3.0]]]]
    """
    border = border_of(images)
    upper_half = border.topk(border.shape[2] // 2 + 1, dim=-1).values
    background = upper_half.amin(-1, keepdim=True).unsqueeze(3)
    is_inside = F.pad(torch.ones_like(images[:1, :1]), (margin,) * 4) > 0
    return torch.where(is_inside, F.pad(images, (margin,) * 4), background)
