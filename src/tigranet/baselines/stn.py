"""STN: the spatial transformer network (Jaderberg et al., 2015) as the paper's Table 1 has it."""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.baselines.convnet import C, ConvNet
from tigranet.notation import FC, Layer, Notation

LOOK = 4
"""The localisation network sees the maps averaged over a grid of this side."""
HIDDEN = 16
"""Its hidden units."""


@dataclass(frozen=True)
class ST(Layer):
    """Spatial transformer with that many parameters: the six of an affine map."""

    parameters: int

    def __post_init__(self) -> None:
        if self.parameters != 6:
            raise ValueError(f"ST has the 6 parameters of an affine map of the plane, got {self.parameters}")


@dataclass(frozen=True)
class STArchitecture(Notation):
    """A spatial transformer network in the paper's notation: C and ST in any number, C first; FC in any number.

    >>> str(STArchitecture.parse("paper"))
    'C[10]-ST[6]-C[20]-ST[6]-FC[500]-FC[300]-FC[100]'
    """

    FIRST = (C,)
    FOLLOW: ClassVar = {C: (C, ST, FC), ST: (C, ST, FC), FC: (FC,)}
    NEEDED = ST
    ORDER = "an STN is C and ST layers, C first and one ST at least, then FC layers"
    PRESETS: ClassVar = {
        "paper-small": "C[3]-ST[6]-C[6]-ST[6]-FC[50]-FC[30]-FC[10]",
        "paper": "C[10]-ST[6]-C[20]-ST[6]-FC[500]-FC[300]-FC[100]",
    }


class SpatialTransformer(nn.Module):
    """Maps sampled where an affine map, read off them, says: z(x) = y(A x + t), bilinear, zeros from outside.

    A and t, six numbers in units of half the map's height and width, come from a localisation network: the maps
    averaged over a 4x4 grid, 16 hidden units with ReLU, six answers. It starts exactly at the identity, whatever it
    sees: the weights of its last layer are zero. All maps of an image are sampled alike, on a grid of half their
    height and width. At the identity that is the mean of squares of 2x2, when the side is even.
    """

    def __init__(self, maps: int) -> None:
        super().__init__()
        last = nn.Linear(HIDDEN, 6)
        nn.init.zeros_(last.weight)
        with torch.no_grad():
            last.bias.copy_(torch.eye(2, 3).flatten())
        self.localise = nn.Sequential(
            nn.AdaptiveAvgPool2d(LOOK), nn.Flatten(), nn.Linear(maps * LOOK**2, HIDDEN), nn.ReLU(), last
        )

    def forward(self, maps: Float[Tensor, "batch maps height width"]) -> Float[Tensor, "batch maps rows columns"]:
        batch, number, height, width = maps.shape
        theta = self.localise(maps).unflatten(1, (2, 3))
        grid = F.affine_grid(theta, [batch, number, halved(height), halved(width)], align_corners=False)
        return F.grid_sample(maps, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def halved(side: int) -> int:
    """The side that a spatial transformer leaves."""
    return max(1, side // 2)


class STN(ConvNet):
    """3x3 filters with ReLU, a spatial transformer after each, fully-connected layers with ReLU between them.

    Table 1 writes ST where the ConvNet has P, and leaves three things open. We read them so (reading 20):

    - *What makes the maps smaller.* Nothing is written, but without it the first fully-connected layer alone would
      have ten times the parameters of the other networks, which the paper calls roughly equal. The sampling grid of a
      spatial transformer may have any size; here it has half the height and width, as P[2] would leave.
    - *The localisation network* (see :class:`SpatialTransformer`): a small one, less than 2 % of ``paper``.
    - *The border*: as the ConvNet's, whose layers these are.

    Args:
        architecture: the paper's notation, a preset (``paper-small``, ``paper``), or a parsed value.
        num_classes: the number of classes; the last layer, to them, is implicit.
        image_size: the height and width of the images, or the one number that both are.
        in_maps: channels of the images.
        border: ``none``, and each filter makes the maps two pixels smaller, or ``zeros``.

    >>> STN("paper-small", num_classes=3, image_size=28)(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2, 3])
    """

    NOTATION = STArchitecture

    def reducing(self, layer: Layer, number: int, maps: int, height: int, width: int) -> tuple[nn.Module, int, int]:
        return SpatialTransformer(maps), halved(height), halved(width)
