"""Rotate, shift and mirror images."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tigranet.data.augment.background import background_of

Interpolation = Literal["bilinear", "nearest"]
"""How values between pixels are computed."""
Padding = Literal["zeros", "reflection", "border", "background"]
"""What enters from outside the image: zeros, as in the paper; the mirror image, for photographs that fill their frame;
the nearest border pixel; or the background (see :func:`~tigranet.data.augment.background.background_of`), and the
nearest border pixel for images without a background."""


def rotate(
    images: Float[Tensor, "batch maps height width"],
    degrees: Float[Tensor, " batch"],
    interpolation: Interpolation = "bilinear",
    padding: Padding = "zeros",
) -> Float[Tensor, "batch maps height width"]:
    """Rotate each image counter-clockwise about its centre by its own angle.

    In the paper, zeros enter from outside the image (reading 14 in ``docs/paper-interpretation.md``).

    Args:
        images: The images.
        degrees: Angle of each image, in degrees.
        interpolation: How values between pixels are computed.
        padding: What enters from outside the image.

    Returns:
        The rotated images, of the same size.

    Example:
        >>> image = torch.eye(3).reshape(1, 1, 3, 3)
        >>> rotate(image, torch.tensor([90.0])).squeeze().round().int()
        tensor([[0, 0, 1],
                [0, 1, 0],
                [1, 0, 0]], dtype=torch.int32)
    """
    height, width = images.shape[2:]
    angle = degrees * (math.pi / 180)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    # grid_sample uses units of half the image's width and height, and y points down
    rows = [cos, -sin * (height / width), zero, sin * (width / height), cos, zero]
    grid = F.affine_grid(
        torch.stack(rows, -1).unflatten(-1, (2, 3)).to(images), list(images.shape), align_corners=False
    )
    if padding != "background":
        return F.grid_sample(images, grid, mode=interpolation, padding_mode=padding, align_corners=False)
    background = background_of(images)
    # Zeros enter into the difference from the background. Images without a background are read at border pixels.
    offset = background.or_else(torch.zeros_like(background.value))
    right, down = (grid[..., axis].clamp(1 / size - 1, 1 - 1 / size) for axis, size in enumerate((width, height)))
    grid = torch.where(background.is_uniform, grid, torch.stack([right, down], -1))
    moved = F.grid_sample(images - offset, grid, mode=interpolation, padding_mode="zeros", align_corners=False)
    return moved + offset


def shift(
    images: Float[Tensor, "batch maps height width"],
    down: Int[Tensor, " batch"],
    right: Int[Tensor, " batch"],
    padding: Padding = "zeros",
) -> Float[Tensor, "batch maps height width"]:
    """Shift each image by its own whole number of pixels.

    Args:
        images: The images.
        down: Rows by which each image moves down. Negative numbers move it up.
        right: Columns by which each image moves to the right. Negative numbers move it to the left.
        padding: What enters from outside the image.

    Returns:
        The shifted images, of the same size.

    Example:
        >>> image = torch.eye(3).reshape(1, 1, 3, 3)
        >>> shift(image, torch.tensor([1]), torch.tensor([0])).squeeze().int()
        tensor([[0, 0, 0],
                [1, 0, 0],
                [0, 1, 0]], dtype=torch.int32)
    """
    height, width = images.shape[2:]
    rows, row_is_inside = _source_positions(down.to(images.device), height, padding)
    columns, column_is_inside = _source_positions(right.to(images.device), width, padding)
    image, channel = (torch.arange(size, device=images.device) for size in images.shape[:2])
    moved = images[
        image[:, None, None, None], channel[:, None, None], rows[:, None, :, None], columns[:, None, None, :]
    ]
    if padding in ("border", "reflection"):
        return moved
    outside = background_of(images).or_else(moved) if padding == "background" else torch.zeros_like(moved)
    return torch.where((row_is_inside[:, :, None] & column_is_inside[:, None, :])[:, None], moved, outside)


def _source_positions(
    shifts: Int[Tensor, " batch"], size: int, padding: Padding
) -> tuple[Int[Tensor, "batch size"], Bool[Tensor, "batch size"]]:
    """Return the position along one axis that each output pixel is read from, and whether it was inside the image."""
    positions = torch.arange(size, device=shifts.device) - shifts[:, None]
    is_inside = (positions >= 0) & (positions < size)
    if padding != "reflection":
        return positions.clamp(0, size - 1), is_inside
    period = max(1, 2 * (size - 1))  # The mirror image does not repeat the border pixel.
    return (size - 1) - (positions.remainder(period) - (size - 1)).abs(), is_inside


class Movements(NamedTuple):
    """The random angle and shift of each image. None where images are not rotated or not shifted."""

    degrees: Float[Tensor, " batch"] | None
    """Counter-clockwise angles."""
    shifts: Int[Tensor, "2 batch"] | None
    """Whole numbers of pixels, down and to the right, before they are limited to the frame."""

    def select(self, rows: slice) -> "Movements":
        """Select consecutive images.

        Args:
            rows: Positions of the images.

        Returns:
            The movements of these images.
        """
        return Movements(
            None if self.degrees is None else self.degrees[rows],
            None if self.shifts is None else self.shifts[:, rows],
        )


@dataclass(frozen=True)
class Isometry:
    """A random rigid movement: a rotation, followed by a shift. Every image moves by its own random amounts.

    Example:
        >>> str(Isometry(rotated=True)), str(Isometry(max_shift=6)), str(Isometry())
        ('rotated', 'shifted by up to 6 pixels', 'upright')
        >>> str(Isometry(max_shift=6, keep_inside=True))
        'shifted by up to 6 pixels within the frame'
    """

    rotated: bool = False
    """Rotate by an angle that is uniform in [0, 360) degrees."""
    max_shift: int = 0
    """Shift by a uniform whole number of pixels, at most this many along each axis."""
    padding: Padding = "zeros"
    """What enters from outside the image."""
    keep_inside: bool = False
    """Limit the shifts so that no pixel that differs from the background leaves the image. Images without a background
    are not shifted. See :func:`~tigranet.data.augment.background.background_of`."""

    def __call__(
        self,
        images: Float[Tensor, "batch maps height width"],
        generator: torch.Generator,
        interpolation: Interpolation = "bilinear",
    ) -> Float[Tensor, "batch maps height width"]:
        """Move each image at random.

        Args:
            images: The images.
            generator: Source of the random angles and shifts.
            interpolation: How values between pixels are computed.

        Returns:
            The moved images, of the same size.
        """
        return self.apply(images, self.draw(len(images), generator), interpolation)

    def draw(self, count: int, generator: torch.Generator) -> Movements:
        """Draw the random angles and shifts of a number of images.

        Args:
            count: Number of images.
            generator: Source of the random angles and shifts.

        Returns:
            The movements, one per image.
        """
        degrees = 360 * torch.rand(count, generator=generator) if self.rotated else None
        limits = (-self.max_shift, self.max_shift + 1)
        shifts = torch.randint(*limits, (2, count), generator=generator) if self.max_shift else None
        return Movements(degrees, shifts)

    def apply(
        self,
        images: Float[Tensor, "batch maps height width"],
        movements: Movements,
        interpolation: Interpolation = "bilinear",
    ) -> Float[Tensor, "batch maps height width"]:
        """Move each image by its angle and shift.

        Args:
            images: The images.
            movements: The movements of these images, from :meth:`draw`.
            interpolation: How values between pixels are computed.

        Returns:
            The moved images, of the same size.
        """
        if movements.degrees is not None:
            images = rotate(images, movements.degrees, interpolation, self.padding)
        if movements.shifts is not None:
            down, right = movements.shifts
            if self.keep_inside:
                background = background_of(images)
                content = ((images != background.value).any(1) | ~background.is_uniform.squeeze(1)).cpu()
                down, right = _limit_to_frame(down, content.any(2)), _limit_to_frame(right, content.any(1))
            images = shift(images, down, right, self.padding)
        return images

    def __str__(self) -> str:
        frame = " within the frame" if self.keep_inside else ""
        shifts = f"shifted by up to {self.max_shift} pixels{frame}" if self.max_shift else ""
        return " and ".join(filter(None, ["rotated" if self.rotated else "", shifts])) or "upright"


ROTATED = Isometry(rotated=True)
"""Rotation by a random angle, without a shift."""


def _limit_to_frame(shifts: Int[Tensor, " batch"], content: Bool[Tensor, "batch length"]) -> Int[Tensor, " batch"]:
    """Clamp shifts to the empty space before and after the content along one axis."""
    before, after = content.int().argmax(1), content.flip(1).int().argmax(1)
    return shifts.clamp(-before, after)


def jitter(
    images: Float[Tensor, "batch maps height width"], reach: float = 0.5
) -> Float[Tensor, "batch maps height width"]:
    """Shift each image by its own random fraction of a pixel, with bilinear interpolation.

    A network that is invariant to shifts learns only one thing from this: how interpolation changes pixels. The
    background enters from outside the image, or the nearest border pixel for images without a background. Nothing
    depends on which value is called black: with the same random numbers, ``jitter(1 - images)`` is
    ``1 - jitter(images)``.

    Args:
        images: The images.
        reach: Maximum shift along each axis in pixels, at most 1.

    Returns:
        The shifted images, of the same size.
    """
    background = background_of(images)
    for axis in (-2, -1):
        step = (2 * torch.rand(len(images), 1, 1, 1, device=images.device, dtype=images.dtype) - 1) * reach
        size = images.shape[axis]
        first, last = (background.or_else(images.narrow(axis, position, 1)) for position in (0, size - 1))
        padded = torch.cat([first, images, last], axis)
        before, after = padded.narrow(axis, 0, size), padded.narrow(axis, 2, size)
        images = (1 - step.abs()) * images + step.clamp(min=0) * before + (-step).clamp(min=0) * after
    return images


def random_shift(
    images: Float[Tensor, "batch maps height width"], fraction: float
) -> Float[Tensor, "batch maps height width"]:
    """Shift each image by its own random whole numbers of pixels.

    No value is interpolated. The background enters from outside the image, or the nearest border pixel for images
    without a background.

    Args:
        images: The images.
        fraction: Maximum shift down and up as a fraction of the height, and to both sides as a fraction of the width.
            Both are rounded to whole pixels.

    Returns:
        The shifted images, of the same size.
    """
    down, right = (
        torch.randint(-reach, reach + 1, (len(images),), device=images.device)
        for reach in (round(fraction * length) for length in images.shape[2:])
    )
    return shift(images, down, right, "background")


def mirror(images: Float[Tensor, "batch maps height width"]) -> Float[Tensor, "batch maps height width"]:
    """Exchange left and right in half of the images, drawn at random.

    Mirror images about different axes differ by a rotation only, so one axis is enough for a network that is invariant
    to rotations.

    Args:
        images: The images.

    Returns:
        The images, half of them mirrored.
    """
    is_mirrored = torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5
    return torch.where(is_mirrored, images.flip(3), images)
