r"""Resampling of filters whose points lie between pixels.

Each point becomes a Gaussian on the pixels. A Gaussian is isotropic, so rotating the points gives the rotated filter,
except for frequencies :math:`\nu` above the bandwidth of the pixels: :math:`e^{-2 \pi^2 \sigma^2 \nu^2}` is 0.09 at
:math:`\nu = 1/2` for :math:`\sigma = 0.7`. Bilinear interpolation has no such property: it leaves an upright filter
sharp and blurs it at 45 degrees.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def on_pixels(points: Float[Tensor, "points 2"], side: int, sigma: float) -> Float[Tensor, "points {side} {side}"]:
    """Resample each point as a Gaussian on a square of pixels.

    Args:
        points: Coordinates (x to the right, y upwards) in pixels from the centre of the square.
        side: Side length of the square in pixels.
        sigma: Standard deviation of the Gaussian in pixels.

    Returns:
        One square per point. The value is 1 at the position of the point.
    """
    axis = torch.arange(side, dtype=points.dtype) - (side - 1) / 2
    x, y = axis[None, None, :], -axis[None, :, None]
    squared_distance = (x - points[:, 0, None, None]) ** 2 + (y - points[:, 1, None, None]) ** 2
    return torch.exp(-squared_distance / (2 * sigma**2))
