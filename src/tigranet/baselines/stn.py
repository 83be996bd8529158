"""STN: the spatial transformer network (Jaderberg et al., 2015) with the architecture of the paper's Table 1."""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.baselines.convnet import C, ConvNet
from tigranet.notation import FC, Layer, Notation

LOCALISATION_GRID = 4
"""The localisation network reads the maps averaged over a grid of this side length."""
LOCALISATION_UNITS = 16
"""Number of hidden units of the localisation network."""


@dataclass(frozen=True)
class ST(Layer):
    """Spatial transformer."""

    parameters: int
    """Number of parameters of the transformation: the 6 of an affine map."""

    def __post_init__(self) -> None:
        if self.parameters != 6:
            raise ValueError(f"ST has the 6 parameters of an affine map of the plane, got {self.parameters}")


@dataclass(frozen=True)
class STArchitecture(Notation):
    """A spatial transformer network in the paper's notation.

    It has any number of C and ST layers, beginning with C and with at least one ST, and any number of FC layers.

    Args:
        layers: The layers in order.

    Example:
        >>> str(STArchitecture.parse("paper"))
        'C[10]-ST[6]-C[20]-ST[6]-FC[500]-FC[300]-FC[100]'
    """

    FIRST = (C,)
    FOLLOW: ClassVar = {C: (C, ST, FC), ST: (C, ST, FC), FC: (FC,)}
    NEEDED = ST
    ORDER = "an STN has C and ST layers, beginning with C and with at least one ST, then FC layers"
    PRESETS: ClassVar = {
        "paper-small": "C[3]-ST[6]-C[6]-ST[6]-FC[50]-FC[30]-FC[10]",
        "paper": "C[10]-ST[6]-C[20]-ST[6]-FC[500]-FC[300]-FC[100]",
    }


class SpatialTransformer(nn.Module):
    """Bilinear sampling of maps at positions that an affine map gives: z(x) = y(A x + t), with zeros outside.

    A and t are six numbers, in units of half the height and width of the map. A localisation network computes them: the
    maps averaged over a 4x4 grid, 16 hidden units with ReLU, six outputs. It starts exactly at the identity for every
    input, because the weights of its last layer start at zero. All maps of an image are sampled at the same positions,
    on a grid of half their height and width. At the identity this is 2x2 mean pooling if the sides are even.

    Args:
        maps: Number of maps.
    """

    def __init__(self, maps: int) -> None:
        super().__init__()
        last = nn.Linear(LOCALISATION_UNITS, 6)
        nn.init.zeros_(last.weight)
        with torch.no_grad():
            last.bias.copy_(torch.eye(2, 3).flatten())
        self.localise = nn.Sequential(
            nn.AdaptiveAvgPool2d(LOCALISATION_GRID),
            nn.Flatten(),
            nn.Linear(maps * LOCALISATION_GRID**2, LOCALISATION_UNITS),
            nn.ReLU(),
            last,
        )

    def forward(self, maps: Float[Tensor, "batch maps height width"]) -> Float[Tensor, "batch maps rows columns"]:
        """Sample the maps.

        Args:
            maps: Maps of any size.

        Returns:
            Maps of half the height and width, rounded down.
        """
        batch, count, height, width = maps.shape
        theta = self.localise(maps).unflatten(1, (2, 3))
        grid = F.affine_grid(theta, [batch, count, half_side(height), half_side(width)], align_corners=False)
        return F.grid_sample(maps, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def half_side(side: int) -> int:
    """Return the side length of maps after a spatial transformer.

    Args:
        side: Side length before it.

    Returns:
        Half of it, rounded down, and at least 1.
    """
    return max(1, side // 2)


class STN(ConvNet):
    """3x3 filters with ReLU, spatial transformers, and fully connected layers with ReLU.

    Table 1 has ST where the ConvNet has P, and does not specify three things. We read them as follows (reading 20):

    - *Downsampling.* The paper does not mention any, but without it the first fully connected layer alone would have
      ten times the parameters of the other networks, which the paper calls roughly equal. The sampling grid of a
      spatial transformer may have any size. Here it has half the height and width, like the maps after P[2].
    - *The localisation network* (see :class:`SpatialTransformer`) is small: less than 2 % of the parameters of
      ``paper``.
    - *The border* is that of the ConvNet, from which the convolutions are taken.

    Args:
        architecture: The paper's notation, a preset (``paper-small``, ``paper``), or a parsed value.
        num_classes: Number of classes. The last layer, which computes the logits, is implicit in the notation.
        image_size: Height and width of the images, or one number for square images.
        in_maps: Number of channels of the images.
        border: ``none`` for convolutions without padding, which reduce height and width by two pixels; ``zeros`` for
            zero padding, which keeps the size.

    Raises:
        ValueError: If the architecture is invalid or the images are too small for it.

    Example:
        >>> STN("paper-small", num_classes=3, image_size=28)(torch.rand(2, 1, 28, 28)).shape
        torch.Size([2, 3])
    """

    NOTATION = STArchitecture

    def _downsampling(
        self, layer: Layer, number: int, maps: int, height: int, width: int
    ) -> tuple[nn.Module, int, int]:
        return SpatialTransformer(maps), half_side(height), half_side(width)
