"""Images drawn out and warped, by interpolation, with nothing turned in them."""

import math
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

WAVES = 3
"""Waves of a warp along each axis, half a one the slowest."""


def deform(
    images: Float[Tensor, "batch maps height width"],
    reach: float = 0.0,
    zoom: float = 0.0,
    stretch: float = 0.0,
    warp: float = 0.0,
) -> Float[Tensor, "batch maps height width"]:
    r"""Each image deformed by its own random potential: the pixel at x is read at

    .. math:: x + \nabla \Phi(x), \qquad \Phi(x) = t \cdot x + \tfrac12 x^\top S x + \varphi(x),

    with a step t of at most ``reach`` pixels along each axis; a symmetric matrix S, which enlarges or shrinks the
    image by at most ``zoom`` of its size and draws it out along a random axis, and together across it, by at most
    ``stretch``; and a sum :math:`\varphi` of slow waves, which moves pixels by ``warp`` of the image's size (the root
    of the mean square, over both axes) and none across the border.

    The derivative of a gradient is symmetric, so at no pixel is the image turned, not even a little: what a network
    that was trained so knows of turned images it knows by itself. Beyond the border its nearest pixel goes on.
    """
    height, width = images.shape[2:]
    drawn = 2 * torch.rand(5, len(images), device=images.device, dtype=images.dtype) - 1
    scale, draw, axis, right, down = drawn
    along, across = stretch * draw * (math.pi * axis).cos(), stretch * draw * (math.pi * axis).sin()
    straight = 1 + zoom * scale
    # affine_grid and grid_sample count in halves of the image
    rows = [
        straight + along, across * (height / width), right * (2 * reach / width),
        across * (width / height), straight - along, down * (2 * reach / height),
    ]  # fmt: skip
    grid = F.affine_grid(torch.stack(rows, -1).unflatten(-1, (2, 3)), list(images.shape), align_corners=False)
    if warp:
        x, y = _slopes(images)
        step = 2 * warp * max(height, width)
        grid = grid + torch.stack([step / width * x, step / height * y], -1)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


class Waves(NamedTuple):
    """Products of cosines, none of which crosses the border, as the matrices of their values and slopes."""

    deviation: Float[Tensor, "waves waves"]
    """Of the weight of each: less for faster waves."""
    down: Float[Tensor, "waves height"]
    down_slope: Float[Tensor, "waves height"]
    right: Float[Tensor, "waves width"]
    right_slope: Float[Tensor, "waves width"]


@lru_cache(maxsize=16)
def _waves(height: int, width: int, device: torch.device, dtype: torch.dtype) -> Waves:
    """Scaled so that the slopes of their random sums have a mean square of 1, in the mean over axes."""
    number = torch.arange(WAVES + 1, dtype=torch.float64)[:, None]
    sides = []
    for length in (height, width):
        k = math.pi * number * (max(height, width) / length)  # the longer side is 1
        angle = math.pi * number * (torch.arange(length) + 0.5) / length
        sides.append((k, angle.cos(), -k * angle.sin()))
    (k_down, down, down_slope), (k_right, right, right_slope) = sides
    deviation = 1 / (4 + k_down**2 + k_right.T**2)
    squares = [(values**2).mean(1) for values in (down, down_slope, right, right_slope)]
    mean = (torch.outer(squares[0], squares[3]) + torch.outer(squares[1], squares[2])) / 2
    deviation = deviation / (deviation**2 * mean).sum().sqrt()
    return Waves(*(matrix.to(device, dtype) for matrix in (deviation, down, down_slope, right, right_slope)))


def _slopes(images: Tensor) -> tuple[Float[Tensor, "batch height width"], Float[Tensor, "batch height width"]]:
    """The gradient of a random sum of waves for each image."""
    waves = _waves(*images.shape[2:], images.device, images.dtype)
    weights = waves.deviation * torch.randn(
        len(images), *waves.deviation.shape, device=images.device, dtype=images.dtype
    )
    return waves.down.T @ weights @ waves.right_slope, waves.down_slope.T @ weights @ waves.right
