"""Random smoothing of images, which teaches a network what interpolation does to them."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def smooth(images: Float[Tensor, "batch maps height width"]) -> Float[Tensor, "batch maps height width"]:
    """Smooth images with the taps (1, 2, 1) / 4 along both axes. The border pixels are repeated outside the image.

    The taps are symmetric, so smoothing commutes with quarter turns and mirror images, for all heights and widths.

    Args:
        images: The images.

    Returns:
        The smoothed images, of the same size.

    Example:
        >>> image = torch.zeros(1, 1, 3, 3)
        >>> image[..., 1, 1] = 16
        >>> smooth(image).squeeze()
        tensor([[1., 2., 1.],
                [2., 4., 2.],
                [1., 2., 1.]])
    """
    padded = F.pad(images, (1, 1, 1, 1), mode="replicate")
    # The two neighbours are added first, which is exact for images of one colour.
    rows = (padded[..., :-2, :] + padded[..., 2:, :]) + 2 * padded[..., 1:-1, :]
    return ((rows[..., :-2] + rows[..., 2:]) + 2 * rows[..., 1:-1]) / 16


def blur(images: Float[Tensor, "batch maps height width"], weight: float) -> Float[Tensor, "batch maps height width"]:
    r"""Blend half of the images with smoothed copies of themselves.

    The image x becomes

    .. math:: x + w \, (\mathrm{smooth}(x) - x), \qquad w \sim U[0, \text{weight}],

    with probability 1/2, and stays as it is otherwise.

    Args:
        images: The images. Each has its own random w.
        weight: Maximum weight of the smoothed image, at most 1.

    Returns:
        The images, of the same size.
    """
    share, draw = torch.rand(2, len(images), 1, 1, 1, device=images.device, dtype=images.dtype)
    return images + weight * share * (draw < 0.5) * (smooth(images) - images)
