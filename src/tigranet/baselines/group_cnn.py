"""Group CNN: a network that is equivariant to the rotations of a regular polygon (Cohen and Welling, 2016)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.baselines.baseline import Baseline
from tigranet.baselines.centred_pool import CentredMeanPool
from tigranet.baselines.filter_gradient import convolve
from tigranet.baselines.memory_format import channels_last_on_gpu
from tigranet.baselines.resampling import on_pixels
from tigranet.layers.standardise import Standardise
from tigranet.notation import FC, Layer, Notation

FILTER_SIDE, DISC_RADIUS, SIGMA = 7, math.sqrt(5), 0.7
"""Side length of a filter in pixels, radius of the disc of its points, and width of the Gaussian for resampling."""


@dataclass(frozen=True)
class LC(Layer):
    """Lifting convolution: from images to maps in several orientations."""

    orientations: int
    """Number of orientations."""
    maps: int
    """Number of output maps, each in all orientations."""


@dataclass(frozen=True)
class GC(Layer):
    """Group convolution: from maps in all orientations to maps in all orientations."""

    maps: int
    """Number of output maps, each in all orientations."""


@dataclass(frozen=True)
class P(Layer):
    """Mean pooling over squares."""

    side: int
    """Side length of the squares."""


@dataclass(frozen=True)
class GroupArchitecture(Notation):
    """A group CNN in the notation of the paper.

    It has one LC layer, then any number of GC and P layers, then any number of FC layers. The presets have 4 or 8
    orientations and about as many parameters as the two networks of TIGraNet; ``c8-large`` is for photographs and has
    1.3 million.

    Args:
        layers: The layers in order.

    Example:
        >>> str(GroupArchitecture.parse("c8"))
        'LC[8,10]-P[2]-GC[20]-P[2]-GC[50]-FC[500]-FC[300]-FC[100]'
    """

    FIRST = (LC,)
    FOLLOW: ClassVar = {LC: (GC, P, FC), GC: (GC, P, FC), P: (GC, P, FC), FC: (FC,)}
    NEEDED = LC
    ORDER = "a group CNN has one LC layer, then GC and P layers, then FC layers"
    PRESETS: ClassVar = {
        "c4-small": "LC[4,3]-P[2]-GC[20]-FC[50]-FC[30]-FC[10]",
        "c8-small": "LC[8,3]-P[2]-GC[10]-FC[50]-FC[30]-FC[10]",
        "c4": "LC[4,10]-P[2]-GC[20]-P[2]-GC[100]-FC[500]-FC[300]-FC[100]",
        "c8": "LC[8,10]-P[2]-GC[20]-P[2]-GC[50]-FC[500]-FC[300]-FC[100]",
        "c8-large": "LC[8,16]-GC[16]-P[2]-GC[32]-GC[32]-P[2]-GC[64]-GC[64]-FC[128]",
    }


def disc_points() -> Float[Tensor, "points 2"]:
    """Return the 21 points of a filter: the 5x5 grid without its corners.

    Returns:
        Coordinates in pixels from the centre.
    """
    reach = int(DISC_RADIUS)
    axis = torch.arange(-reach, reach + 1, dtype=torch.float64)
    points = torch.cartesian_prod(axis, axis)
    return points[points.square().sum(1) <= DISC_RADIUS**2 + 1e-9]


def rotated_discs(orientations: int) -> Float[Tensor, "{orientations} points side side"]:
    """Resample the points of a filter on pixels, in every orientation.

    Args:
        orientations: Number of orientations.

    Returns:
        For k = 0, 1, ... the points rotated counter-clockwise by k / ``orientations`` of a full turn, each resampled as
        a Gaussian on the pixels.
    """
    theta = torch.arange(orientations, dtype=torch.float64) * (2 * math.pi / orientations)
    cos, sin = theta.cos(), theta.sin()
    rotations = torch.stack([torch.stack([cos, -sin], 1), torch.stack([sin, cos], 1)], 1)
    return torch.stack([on_pixels(disc_points() @ rotation.T, FILTER_SIDE, SIGMA) for rotation in rotations]).float()


class GroupConv(nn.Module):
    r"""Group convolution, or lifting convolution if the input is an image.

    .. math:: z_k = \sum_j (R_k w_{j-k}) \star y_j

    Here :math:`y_j` are the orientations of the input maps, :math:`R_k` rotates a filter by k steps, and :math:`\star`
    is cross-correlation. One filter w is used for all orientations k of the output: it is rotated, and the orientations
    that it reads are shifted with it. If y rotates by one step, so that :math:`y_j` becomes the rotated
    :math:`y_{j-1}`, then z does the same. A lifting convolution reads images, which have no orientations.

    A filter has 21 weights on the points of a disc. A Gaussian resamples them on 7x7 pixels, so a rotated filter is as
    sharp as an upright one.

    Args:
        in_maps: Number of input maps.
        out_maps: Number of output maps.
        orientations: Number of orientations.
        from_images: Whether the input is an image (lifting convolution).

    Shape:
        - Input: (batch, in_maps x orientations, height, width), or (batch, in_maps, height, width) for images.
        - Output: (batch, out_maps x orientations, height, width).
    """

    discs: Tensor
    relative_orientations: Tensor

    def __init__(self, in_maps: int, out_maps: int, orientations: int, from_images: bool = False) -> None:
        super().__init__()
        self.in_maps, self.out_maps, self.orientations, self.from_images = in_maps, out_maps, orientations, from_images
        k = torch.arange(orientations)
        discs = rotated_discs(orientations)
        relative = torch.zeros(orientations, 1, dtype=torch.int64) if from_images else (k - k[:, None]) % orientations
        self.register_buffer("discs", discs, persistent=False)
        self.register_buffer("relative_orientations", relative, persistent=False)
        inputs = in_maps * relative.shape[1]
        gain = math.sqrt(2 / (inputs * float(discs[0].square().sum())))  # He initialisation for filters of this norm
        self.w = nn.Parameter(gain * torch.randn(out_maps, in_maps, relative.shape[1], len(discs[0])))

    def weight(self) -> Float[Tensor, "outs ins side side"]:
        """Return the filters of the equivalent ordinary convolution.

        Returns:
            Filters for all orientations of the output and the input.
        """
        rotated = torch.einsum("oikjp,kpyx->okijyx", self.w[:, :, self.relative_orientations], self.discs)
        return rotated.flatten(2, 3).flatten(0, 1)

    def forward(self, y: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch outs height width"]:
        """Convolve the maps, with zero padding.

        Args:
            y: Maps in all orientations, or images.

        Returns:
            Maps in all orientations.
        """
        y, weight = channels_last_on_gpu(y), self.weight()
        if y.is_cuda and torch.is_autocast_enabled("cuda") and not self.from_images:
            dtype = torch.get_autocast_dtype("cuda")
            return convolve(y.to(dtype), weight.to(dtype))
        return F.conv2d(y, weight, padding=FILTER_SIDE // 2)

    def extra_repr(self) -> str:
        """Return the constructor arguments for ``repr``."""
        return f"{self.in_maps}, {self.out_maps}, orientations={self.orientations}, from_images={self.from_images}"


class NormReLU(nn.Module):
    """Batch normalisation of each map over all its orientations, followed by ReLU.

    Args:
        maps: Number of maps.
    """

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.maps, self.norm = maps, nn.BatchNorm3d(maps)

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch ins height width"]:
        """Normalise the maps and apply ReLU.

        Args:
            z: Maps in all orientations.

        Returns:
            Maps of the same shape.
        """
        if not z.is_cuda:
            return F.relu(self.norm(z.unflatten(1, (self.maps, -1)))).flatten(1, 2)
        # On a GPU, PyTorch normalises a map with one block of threads, unless the maps are the last dimension.
        by_orientation = z.permute(0, 2, 3, 1).unflatten(3, (self.maps, -1)).mT
        rows = F.relu(self.norm(by_orientation.reshape(-1, self.maps, 1, 1, 1)))
        return rows.reshape(by_orientation.shape).mT.flatten(3).permute(0, 3, 1, 2)


class OrientationPool(nn.Module):
    """The maximum over orientations at each pixel, averaged over all pixels and standardised.

    The means of images that are mostly background differ little, so they are standardised like the statistics of
    TIGraNet.

    Args:
        maps: Number of maps.
    """

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.maps, self.standardise = maps, Standardise(maps)

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch maps"]:
        """Pool over orientations and pixels.

        Args:
            z: Maps in all orientations.

        Returns:
            One feature per map.
        """
        return self.standardise(z.unflatten(1, (self.maps, -1)).amax(2).mean((2, 3)))


class GroupCNN(Baseline):
    """Maps in 4 or 8 orientations that rotate with the image, pooled over orientations and pixels to be invariant.

    The paper does not include this baseline, although it is an obvious one to ask for. If the number of orientations is
    a multiple of 4, quarter turns change the logits by rounding errors only. Rotations by a multiple of the angle
    between orientations are approximated as well as the pixels allow, and other angles as well as the number of
    orientations allows.

    Args:
        architecture: The notation of :class:`GroupArchitecture`, a preset (``c4``, ``c8``, ``c4-small``,
            ``c8-small``, ``c8-large``), or a parsed value.
        num_classes: Number of classes. The last layer, which computes the logits, is implicit in the notation.
        image_size: Height and width of the images, or one number for square images.
        in_maps: Number of channels of the images.

    Raises:
        ValueError: If the architecture is invalid, or a number is less than 1.

    Example:
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
        modules: list[nn.Module] = []
        maps, orientations = in_maps, 1
        for layer in self.architecture.layers:
            match layer:
                case LC(orientations, out_maps):
                    modules += [GroupConv(maps, out_maps, orientations, from_images=True), NormReLU(out_maps)]
                    maps = out_maps
                case GC(out_maps):
                    modules += [GroupConv(maps, out_maps, orientations), NormReLU(out_maps)]
                    maps = out_maps
                case P(side):
                    modules.append(CentredMeanPool(side))
        self.filters = nn.Sequential(*modules, OrientationPool(maps))
        self.classifier = self._fully_connected_layers(maps)
