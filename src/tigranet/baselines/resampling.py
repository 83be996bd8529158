"""Filters whose points lie between the pixels, brought onto the pixels by a Gaussian.

A Gaussian does not know where the axes point, so a filter whose points are turned by any angle becomes the turned
filter, but for what lies beyond the pixels' bandwidth: exp(-2 pi^2 sigma^2 nu^2) is 0.09 at nu = 1/2 for sigma = 0.7.
Bilinear interpolation has no such bandwidth: it would leave a filter sharp upright and blur it at 45 degrees.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def on_pixels(points: Float[Tensor, "points 2"], side: int, sigma: float) -> Float[Tensor, "points {side} {side}"]:
    """What a unit mass at each of ``points``, (x to the right, y up, in pixels from the centre), is on the pixels."""
    axis = torch.arange(side, dtype=points.dtype) - (side - 1) / 2
    across, up = axis[None, None, :], -axis[None, :, None]
    squared = (across - points[:, 0, None, None]) ** 2 + (up - points[:, 1, None, None]) ** 2
    return torch.exp(-squared / (2 * sigma**2))
