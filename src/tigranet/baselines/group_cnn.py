"""Group CNN: a network equivariant to the rotations of a regular polygon (Cohen and Welling, 2016)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.baselines.baseline import Baseline
from tigranet.baselines.centred_pool import CentredMeanPool
from tigranet.baselines.resampling import on_pixels
from tigranet.layers.standardise import Standardise
from tigranet.notation import FC, Layer, Notation

SIDE, RADIUS, SIGMA = 7, math.sqrt(5), 0.7
"""Pixels along a filter, the disc its points lie in, and the Gaussian that brings them onto the pixels."""


@dataclass(frozen=True)
class LC(Layer):
    """Lifting convolution: from images to that many maps, each in so many orientations."""

    turns: int
    maps: int


@dataclass(frozen=True)
class GC(Layer):
    """Group convolution: to that many maps, in all orientations."""

    maps: int


@dataclass(frozen=True)
class P(Layer):
    """Mean pooling over squares of that side."""

    side: int


@dataclass(frozen=True)
class GroupArchitecture(Notation):
    """A group CNN in the notation of the others: one LC, first; GC and P in any number; FC in any number.

    The presets have 4 or 8 orientations and about as many parameters as TIGraNet's two networks.

    >>> str(GroupArchitecture.parse("c8"))
    'LC[8,10]-P[2]-GC[20]-P[2]-GC[50]-FC[500]-FC[300]-FC[100]'
    """

    FIRST = (LC,)
    FOLLOW: ClassVar = {LC: (GC, P, FC), GC: (GC, P, FC), P: (GC, P, FC), FC: (FC,)}
    NEEDED = LC
    ORDER = "a group CNN is one LC, then GC and P layers, then FC layers"
    PRESETS: ClassVar = {
        "c4-small": "LC[4,3]-P[2]-GC[20]-FC[50]-FC[30]-FC[10]",
        "c8-small": "LC[8,3]-P[2]-GC[10]-FC[50]-FC[30]-FC[10]",
        "c4": "LC[4,10]-P[2]-GC[20]-P[2]-GC[100]-FC[500]-FC[300]-FC[100]",
        "c8": "LC[8,10]-P[2]-GC[20]-P[2]-GC[50]-FC[500]-FC[300]-FC[100]",
    }


def disc() -> Float[Tensor, "points 2"]:
    """The 21 points of the filters: those of the 5x5 grid without its corners."""
    reach = int(RADIUS)
    axis = torch.arange(-reach, reach + 1, dtype=torch.float64)
    points = torch.cartesian_prod(axis, axis)
    return points[points.square().sum(1) <= RADIUS**2 + 1e-9]


def turned_discs(turns: int) -> Float[Tensor, "{turns} points side side"]:
    """Each point of the filters on the pixels, turned counter-clockwise by k / turns of a full turn, k = 0, 1, ..."""
    theta = torch.arange(turns, dtype=torch.float64) * (2 * math.pi / turns)
    cos, sin = theta.cos(), theta.sin()
    turn = torch.stack([torch.stack([cos, -sin], 1), torch.stack([sin, cos], 1)], 1)
    return torch.stack([on_pixels(disc() @ matrix.T, SIDE, SIGMA) for matrix in turn]).float()


class GroupConv(nn.Module):
    """z_k = sum_j w_{j-k} turned by k, correlated with y_j, over the orientations j of the maps y.

    One filter w serves all orientations k of the answer: turned, and with the orientations that it reads turned along.
    If y turns by one step, y_j becoming the turned y_{j-1}, so does z. A lifting convolution, ``of_images``, reads
    images, which have no orientations. A filter is 21 numbers, on the points of a disc, and they are brought onto 7x7
    pixels by a Gaussian: turned by any angle it is as sharp as upright. Signals are (batch, map x orientation, height,
    width), and one convolution does it all.
    """

    discs: Tensor
    reads: Tensor

    def __init__(self, in_maps: int, out_maps: int, turns: int, of_images: bool = False) -> None:
        super().__init__()
        self.in_maps, self.out_maps, self.turns, self.of_images = in_maps, out_maps, turns, of_images
        k = torch.arange(turns)
        discs = turned_discs(turns)
        reads = torch.zeros(turns, 1, dtype=torch.int64) if of_images else (k - k[:, None]) % turns
        self.register_buffer("discs", discs, persistent=False)
        self.register_buffer("reads", reads, persistent=False)
        inputs = in_maps * reads.shape[1]
        gain = math.sqrt(2 / (inputs * float(discs[0].square().sum())))  # as He's, for filters of this norm
        self.w = nn.Parameter(gain * torch.randn(out_maps, in_maps, reads.shape[1], len(discs[0])))

    def weight(self) -> Float[Tensor, "outs ins side side"]:
        """The filters as those of a plain convolution."""
        turned = torch.einsum("oikjp,kpyx->okijyx", self.w[:, :, self.reads], self.discs)
        return turned.flatten(2, 3).flatten(0, 1)

    def forward(self, y: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch outs height width"]:
        return F.conv2d(y, self.weight(), padding=SIDE // 2)

    def extra_repr(self) -> str:
        return f"{self.in_maps}, {self.out_maps}, turns={self.turns}, of_images={self.of_images}"


class NormReLU(nn.Module):
    """Each map standardised, all orientations together, and ReLU."""

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.maps, self.norm = maps, nn.BatchNorm3d(maps)

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch ins height width"]:
        return F.relu(self.norm(z.unflatten(1, (self.maps, -1)))).flatten(1, 2)


class OrientationPool(nn.Module):
    """The strongest orientation at each pixel, and the mean of that over all pixels, standardised as the statistics
    of TIGraNet are: means of images that are mostly background differ little."""

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.maps, self.standardise = maps, Standardise(maps)

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch maps"]:
        return self.standardise(z.unflatten(1, (self.maps, -1)).amax(2).mean((2, 3)))


class GroupCNN(Baseline):
    """Maps in 4 or 8 orientations that turn with the image; pooled over orientations and pixels, they do not change.

    The paper leaves this rival out; its reader would ask for it. With orientations in a multiple of 4 the answer is
    the same to rounding under quarter turns; under turns by one of its own angles as nearly as the pixels allow; and
    between two of them as nearly as the orientations are close.

    Args:
        architecture: the notation of :class:`GroupArchitecture`, a preset (``c4``, ``c8``, ``c4-small``,
            ``c8-small``), or a parsed value.
        num_classes: the number of classes; the last layer, to them, is implicit.
        image_size: the height and width of the images, or the one number that both are.
        in_maps: channels of the images.

    >>> GroupCNN("c8-small", num_classes=3, image_size=28)(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2, 3])
    """

    NOTATION = GroupArchitecture

    def __init__(
        self,
        architecture: str | GroupArchitecture,
        num_classes: int,
        image_size: int | tuple[int, int],
        in_maps: int = 1,
    ) -> None:
        super().__init__(architecture, num_classes, image_size, in_maps)
        seeing: list[nn.Module] = []
        maps, turns = in_maps, 1
        for layer in self.architecture.layers:
            match layer:
                case LC(orientations, gives):
                    seeing += [GroupConv(maps, gives, orientations, of_images=True), NormReLU(gives)]
                    maps, turns = gives, orientations
                case GC(gives):
                    seeing += [GroupConv(maps, gives, turns), NormReLU(gives)]
                    maps = gives
                case P(side):
                    seeing.append(CentredMeanPool(side))
        self.filters = nn.Sequential(*seeing, OrientationPool(maps))
        self.classifier = self.connected(maps)
