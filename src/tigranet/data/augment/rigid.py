"""Images turned and shifted, by interpolation."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

Interpolation = Literal["bilinear", "nearest"]
Padding = Literal["zeros", "reflection"]
"""What comes in from outside an image: nothing, or the image in a mirror, for pictures that fill their frame."""


def rotate(
    images: Float[Tensor, "batch maps height width"],
    degrees: Float[Tensor, " batch"],
    interpolation: Interpolation = "bilinear",
    padding: Padding = "zeros",
) -> Float[Tensor, "batch maps height width"]:
    """Each image turned counter-clockwise about its centre by its own angle; the paper's come with zeros from
    outside (reading 14).

    >>> image = torch.eye(3).reshape(1, 1, 3, 3)
    >>> rotate(image, torch.tensor([90.0])).squeeze().round().int()
    tensor([[0, 0, 1],
            [0, 1, 0],
            [1, 0, 0]], dtype=torch.int32)
    """
    height, width = images.shape[2:]
    angle = degrees * (math.pi / 180)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    # in units of half the image's width and height, as grid_sample counts; y points down
    rows = [cos, -sin * (height / width), zero, sin * (width / height), cos, zero]
    grid = F.affine_grid(
        torch.stack(rows, -1).unflatten(-1, (2, 3)).to(images), list(images.shape), align_corners=False
    )
    return F.grid_sample(images, grid, mode=interpolation, padding_mode=padding, align_corners=False)


def shift(
    images: Float[Tensor, "batch maps height width"],
    down: Int[Tensor, " batch"],
    right: Int[Tensor, " batch"],
    padding: Padding = "zeros",
) -> Float[Tensor, "batch maps height width"]:
    """Each image shifted by its own whole numbers of pixels.

    >>> image = torch.eye(3).reshape(1, 1, 3, 3)
    >>> shift(image, torch.tensor([1]), torch.tensor([0])).squeeze().int()
    tensor([[0, 0, 0],
            [1, 0, 0],
            [0, 1, 0]], dtype=torch.int32)
    """
    reach = int(torch.cat([down, right]).abs().max()) if len(down) else 0
    padded = F.pad(images, (reach, reach, reach, reach), "constant" if padding == "zeros" else "reflect")
    height, width = images.shape[2:]
    rows = torch.arange(height, device=images.device) + reach - down.to(images.device)[:, None]
    columns = torch.arange(width, device=images.device) + reach - right.to(images.device)[:, None]
    image, channel = (torch.arange(size, device=images.device) for size in images.shape[:2])
    return padded[image[:, None, None, None], channel[:, None, None], rows[:, None, :, None], columns[:, None, None, :]]


@dataclass(frozen=True)
class Isometry:
    """How test images are moved: each turned by its own random angle, uniform in [0, 360), if ``rotated``, and then
    shifted by its own random whole number of pixels, up to ``max_shift`` along each axis. With ``keep_inside`` shifts
    are limited so that no nonzero pixel leaves the image.

    >>> str(Isometry(rotated=True)), str(Isometry(max_shift=6)), str(Isometry())
    ('rotated', 'shifted by up to 6 pixels', 'upright')
    >>> str(Isometry(max_shift=6, keep_inside=True))
    'shifted by up to 6 pixels within the frame'
    """

    rotated: bool = False
    max_shift: int = 0
    padding: Padding = "zeros"
    keep_inside: bool = False

    def __call__(
        self,
        images: Float[Tensor, "batch maps height width"],
        generator: torch.Generator,
        interpolation: Interpolation = "bilinear",
    ) -> Float[Tensor, "batch maps height width"]:
        """A draw of ``generator``."""
        if self.rotated:
            angles = 360 * torch.rand(len(images), generator=generator)
            images = rotate(images, angles, interpolation, self.padding)
        if self.max_shift:
            down, right = torch.randint(-self.max_shift, self.max_shift + 1, (2, len(images)), generator=generator)
            if self.keep_inside:
                filled = (images != 0).any(1).cpu()
                down, right = _within(down, filled.any(2)), _within(right, filled.any(1))
            images = shift(images, down, right, self.padding)
        return images

    def __str__(self) -> str:
        within = " within the frame" if self.keep_inside else ""
        steps = f"shifted by up to {self.max_shift} pixels{within}" if self.max_shift else ""
        return " and ".join(filter(None, ["rotated" if self.rotated else "", steps])) or "upright"


ROTATED = Isometry(rotated=True)


def _within(steps: Int[Tensor, " batch"], filled: Bool[Tensor, "batch length"]) -> Int[Tensor, " batch"]:
    """The steps, none longer than there is room before and behind what is ``filled`` along the axis."""
    before, behind = filled.int().argmax(1), filled.flip(1).int().argmax(1)
    return steps.clamp(-before, behind)


def jitter(
    images: Float[Tensor, "batch maps height width"], reach: float = 0.5
) -> Float[Tensor, "batch maps height width"]:
    """Each image shifted by its own random sub-pixel step, at most ``reach`` <= 1 pixels along each axis.

    To a network that ignores shifts the steps teach one thing: what interpolation does to pixels.
    """
    for axis in (-2, -1):
        step = (2 * torch.rand(len(images), 1, 1, 1, device=images.device, dtype=images.dtype) - 1) * reach
        padding = (0, 0, 1, 1) if axis == -2 else (1, 1, 0, 0)
        padded, size = F.pad(images, padding), images.shape[axis]
        before, after = padded.narrow(axis, 0, size), padded.narrow(axis, 2, size)
        images = (1 - step.abs()) * images + step.clamp(min=0) * before + (-step).clamp(min=0) * after
    return images
