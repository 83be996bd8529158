"""Random changes of upright training images, on the device of the images."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tigranet.data.augment.rigid import rotate


@dataclass(frozen=True)
class Augmentation:
    """Strengths of the random changes. Each image has its own random numbers."""

    shift: int = 4
    """Maximum shift in whole pixels."""
    unchanged: float = 0.5
    """Fraction of the images that are not interpolated."""
    rotate: bool = False
    """Rotate by any angle."""
    zoom: float = 0.1
    """Maximum relative change of scale."""
    stretch: float = 0.1
    """Maximum stretch along a random axis."""
    jitter: float = 0.5
    """Maximum shift by a fraction of a pixel."""
    flip: bool = False
    """Mirror half of the images."""
    blur: float = 0.0
    """Maximum weight of a smoothed image, for half of the images."""
    tone: float = 0.1
    """Maximum relative change of contrast, and change of brightness."""
    cutout: int = 0
    """Side length of a square that is set to zero."""
    padding: str = "reflection"
    """What enters from outside the image: "reflection" or "zeros"."""

    def __call__(self, x: Tensor) -> Tensor:
        """Change each image at random."""
        uniform = 2 * torch.rand(9, len(x), 1, 1, 1, device=x.device) - 1
        if self.flip:
            x = torch.where(uniform[0] < 0, x.flip(3), x)
        x = self._deform(self._shift(x))
        if self.blur:
            share = self.blur * uniform[1].abs() * (uniform[2] < 0)
            x = x + share * (smooth(x) - x)
        x = x * (1 + self.tone * uniform[3])
        x = x + self.tone * (2 * torch.rand(*x.shape[:2], 1, 1, device=x.device) - 1)
        return self._cut(x)

    def _shift(self, x: Tensor) -> Tensor:
        if not self.shift:
            return x
        padded = F.pad(x, (self.shift,) * 4, mode="reflect" if self.padding == "reflection" else "constant")
        pixel = torch.arange(x.shape[2], device=x.device)
        down, right = torch.randint(2 * self.shift + 1, (2, len(x), 1), device=x.device)
        image, channel = (torch.arange(count, device=x.device) for count in x.shape[:2])
        rows, columns = (pixel + down)[:, None, :, None], (pixel + right)[:, None, None, :]
        return padded[image[:, None, None, None], channel[None, :, None, None], rows, columns]

    def _deform(self, x: Tensor) -> Tensor:
        is_moved = torch.rand(len(x), device=x.device) >= self.unchanged
        scale, extent, axis, turn, right, down = (2 * torch.rand(6, len(x), device=x.device) - 1) * is_moved
        along, across = (self.stretch * extent * wave(math.pi * axis) for wave in (torch.cos, torch.sin))
        factor = 1 + self.zoom * scale
        symmetric = torch.stack([factor + along, across, across, factor - along], -1).unflatten(-1, (2, 2))
        angle = math.pi * turn * self.rotate
        rotation = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1).unflatten(-1, (2, 2))
        offset = torch.stack([right, down], -1)[..., None] * (2 * self.jitter / x.shape[2])
        grid = F.affine_grid(torch.cat([rotation @ symmetric, offset], -1), list(x.shape), align_corners=False)
        moved = F.grid_sample(x, grid, padding_mode=self.padding, align_corners=False)
        return torch.where(is_moved[:, None, None, None], moved, x)

    def _cut(self, x: Tensor) -> Tensor:
        if not self.cutout:
            return x
        pixel = torch.arange(x.shape[2], device=x.device)
        row, column = torch.randint(x.shape[2], (2, len(x), 1), device=x.device)
        is_row, is_column = ((pixel - centre).abs() < self.cutout // 2 for centre in (row, column))
        return x.masked_fill(is_row[:, None, :, None] & is_column[:, None, None, :], 0)


def smooth(x: Tensor) -> Tensor:
    """Smooth images with the taps (1, 2, 1) / 4 along both axes."""
    return F.avg_pool2d(F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), 2, 1), 2, 1)


def rotate_all(x: Tensor, degrees: float) -> Tensor:
    """Rotate all images by the same angle, bilinearly, with zeros outside."""
    return rotate(x, torch.full((len(x),), float(degrees), device=x.device))
