"""A smooth disc, outside of which images and maps are plain."""

import torch
from jaxtyping import Float
from torch import Tensor

IMAGE_SOFTNESS = 2.0
"""Width of the border of the disc of an image in pixels."""
MAP_SOFTNESS, MAP_REACH = 1.0, 0.5
"""Width of the border of the disc of a map in pixels, and by how many pixels it is larger than that of an image."""


def disc(
    height: int, width: int, softness: float, reach: float = 0.0, *, like: Tensor | None = None
) -> Float[Tensor, "height width"]:
    """Compute a function that is 1 inside a disc and falls to 0 at its border.

    A rotation by any angle about the centre of the image maps the disc onto itself, unlike the square frame.

    Args:
        height: Number of rows.
        width: Number of columns. The diameter of the disc is the smaller of the two.
        softness: Width of the border in pixels, over which the function falls linearly from 1 to 0.
        reach: Distance in pixels by which the disc is larger than the frame.
        like: A tensor with the dtype and device of the result. By default it is in float32 on the CPU.

    Returns:
        The function.

    Example:
        >>> disc(4, 4, softness=1.0)[1]
        tensor([0.4189, 1.0000, 1.0000, 0.4189])
    """
    device = None if like is None else like.device
    y, x = (torch.arange(size, dtype=torch.float32, device=device) - (size - 1) / 2 for size in (height, width))
    radius = torch.hypot(y[:, None], x[None, :])
    window = ((min(height, width) / 2 + reach - radius) / softness).clamp(0, 1)
    return window if like is None else window.to(like.dtype)


def window_images(images: Float[Tensor, "batch maps height width"]) -> Float[Tensor, "batch maps height width"]:
    r"""Replace what is outside the disc by the mean colour of what is inside.

    .. math:: x \mapsto m + w\,(x - m), \qquad m = \sum w x \big/ \sum w,

    with the disc w. A rotated photograph loses its corners, and something else enters. Inside the disc, an image and
    its rotated version have the same content.

    Args:
        images: The images.

    Returns:
        Images of the same shape.
    """
    window = disc(images.shape[2], images.shape[3], IMAGE_SOFTNESS, like=images)
    mean = (window * images).sum((2, 3), keepdim=True) / window.sum().clamp(min=1e-6)
    return fade_to_colour(images, mean)


def fade_to_colour(
    images: Float[Tensor, "batch maps height width"], colour: Float[Tensor, "*batch maps 1 1"]
) -> Float[Tensor, "batch maps height width"]:
    r"""Show images through the disc w, on a background of one colour m: :math:`x \mapsto m + w\,(x - m)`.

    Args:
        images: The images.
        colour: The colour outside the disc, of all images or of each image.

    Returns:
        Images of the same shape.
    """
    window = disc(images.shape[2], images.shape[3], IMAGE_SOFTNESS, like=images)
    return colour + window * (images - colour)


def window_maps(z: Float[Tensor, "batch maps nodes"], height: int, width: int) -> Float[Tensor, "batch maps nodes"]:
    """Set maps to zero outside the disc.

    Args:
        z: Maps on a grid.
        height: Number of rows of the grid.
        width: Number of columns of the grid.

    Returns:
        Maps of the same shape.
    """
    return z * disc(height, width, MAP_SOFTNESS, MAP_REACH, like=z).flatten()
