"""Random smooth deformations that contain no rotation, by interpolation."""

import math
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

MAX_HALF_PERIODS = 3
"""Half periods along each axis of the fastest wave of a warp."""


def deform(
    images: Float[Tensor, "batch maps height width"],
    reach: float = 0.0,
    zoom: float = 0.0,
    stretch: float = 0.0,
    warp: float = 0.0,
) -> Float[Tensor, "batch maps height width"]:
    r"""Deform each image by the gradient of its own random potential.

    The output at x is the input at

    .. math:: x + \nabla \Phi(x), \qquad \Phi(x) = t \cdot x + \tfrac12 x^\top S x + \varphi(x),

    where t is a shift; S is a symmetric matrix, which scales the image and stretches it along a random axis while it
    compresses it along the perpendicular axis; and :math:`\varphi` is a random sum of slow waves that moves no pixel
    across the border.

    The Jacobian of a gradient field is symmetric, so the deformation does not rotate the image anywhere. A network that
    is trained with it therefore learns nothing about rotated images. Outside the image, the nearest border pixel is
    repeated.

    Args:
        images: The images.
        reach: Maximum shift along each axis, in pixels.
        zoom: Maximum relative change of size.
        stretch: Maximum stretch along the random axis, relative to the size of the image.
        warp: Root mean square displacement by the waves, averaged over both axes, relative to the longer side.

    Returns:
        The deformed images.
    """
    height, width = images.shape[2:]
    uniform = 2 * torch.rand(5, len(images), device=images.device, dtype=images.dtype) - 1
    scale, extent, axis, right, down = uniform
    along, across = stretch * extent * (math.pi * axis).cos(), stretch * extent * (math.pi * axis).sin()
    factor = 1 + zoom * scale
    # affine_grid and grid_sample use units of half the image's width and height
    rows = [
        factor + along, across * (height / width), right * (2 * reach / width),
        across * (width / height), factor - along, down * (2 * reach / height),
    ]  # fmt: skip
    grid = F.affine_grid(torch.stack(rows, -1).unflatten(-1, (2, 3)), list(images.shape), align_corners=False)
    if warp:
        x, y = _random_slopes(images)
        step = 2 * warp * max(height, width)
        grid = grid + torch.stack([step / width * x, step / height * y], -1)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


class Waves(NamedTuple):
    """Products of cosines along both axes, with zero slope across the border."""

    deviation: Float[Tensor, "waves waves"]
    """Standard deviation of the random coefficient of each product: smaller for faster waves."""
    down: Float[Tensor, "waves height"]
    """Values of the cosines along the height."""
    down_slope: Float[Tensor, "waves height"]
    """Derivatives of the cosines along the height."""
    right: Float[Tensor, "waves width"]
    """Values of the cosines along the width."""
    right_slope: Float[Tensor, "waves width"]
    """Derivatives of the cosines along the width."""


@lru_cache(maxsize=16)
def _waves(height: int, width: int, device: torch.device, dtype: torch.dtype) -> Waves:
    """Return waves whose random sums have slopes with a mean square of 1, averaged over both axes."""
    half_periods = torch.arange(MAX_HALF_PERIODS + 1, dtype=torch.float64)[:, None]
    sides = []
    for length in (height, width):
        k = math.pi * half_periods * (max(height, width) / length)  # the longer side has length 1
        angle = math.pi * half_periods * (torch.arange(length) + 0.5) / length
        sides.append((k, angle.cos(), -k * angle.sin()))
    (k_down, down, down_slope), (k_right, right, right_slope) = sides
    deviation = 1 / (4 + k_down**2 + k_right.T**2)
    mean_squares = [(values**2).mean(1) for values in (down, down_slope, right, right_slope)]
    slope_squares = torch.outer(mean_squares[0], mean_squares[3]) + torch.outer(mean_squares[1], mean_squares[2])
    deviation = deviation / (deviation**2 * (slope_squares / 2)).sum().sqrt()
    return Waves(*(matrix.to(device, dtype) for matrix in (deviation, down, down_slope, right, right_slope)))


def _random_slopes(images: Tensor) -> tuple[Float[Tensor, "batch height width"], Float[Tensor, "batch height width"]]:
    """Return the gradient, to the right and down, of a random sum of waves for each image."""
    waves = _waves(*images.shape[2:], images.device, images.dtype)
    coefficients = waves.deviation * torch.randn(
        len(images), *waves.deviation.shape, device=images.device, dtype=images.dtype
    )
    return waves.down.T @ coefficients @ waves.right_slope, waves.down_slope.T @ coefficients @ waves.right
