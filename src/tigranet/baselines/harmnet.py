"""HarmNet: the harmonic network (Worrall et al., 2017) as the paper's Table 1 has it."""

import math
from dataclasses import astuple, dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.baselines.baseline import Baseline
from tigranet.baselines.centred_pool import CentredMeanPool
from tigranet.baselines.resampling import on_pixels
from tigranet.notation import Layer, Notation

ORDERS = 2
"""Streams of rotation order 0 and 1."""
SIDE, RADII, SIGMA = 7, (2 / 3, 4 / 3, 2.0), 0.7
"""Pixels along a filter, its rings, and the Gaussian that brings them onto the pixels."""
POINTS = 64
"""Points on a ring; a multiple of 4, so that a quarter turn is exact."""
SMALLEST = 1e-4
"""Added to squared moduli: a number much smaller than its root has no phase worth keeping."""


@dataclass(frozen=True)
class HRC(Layer):
    """Harmonic cross-correlation from so many maps to so many, of each rotation order."""

    in_maps: int
    out_maps: int


@dataclass(frozen=True)
class HCN(Layer):
    """Complex nonlinearity with that many parameters: a bias for each map."""

    maps: int


@dataclass(frozen=True)
class HarmArchitecture(Notation):
    """A harmonic network in the paper's notation: HRC, each followed by HRC, HCN or nothing.

    >>> str(HarmArchitecture.parse("paper"))
    'HRC[1,10]-HCN[10]-HRC[10,10]-HRC[10,20]-HCN[20]-HRC[20,20]'
    """

    FIRST = (HRC,)
    FOLLOW: ClassVar = {HRC: (HRC, HCN), HCN: (HRC,)}
    NEEDED = HRC
    ORDER = "a HarmNet is HRC layers, each of which an HCN may follow"
    PRESETS: ClassVar = {
        "paper": "HRC[1,10]-HCN[10]-HRC[10,10]-HRC[10,20]-HCN[20]-HRC[20,20]",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        maps = None
        for number, layer in enumerate(self.layers, start=1):
            numbers = astuple(layer)
            reads, gives = numbers[0], numbers[-1]
            if maps not in (None, reads):
                raise ValueError(
                    f"layer {number} ('{layer}') of '{self}' reads {reads} maps, the layer before it gives {maps}"
                )
            maps = gives


def harmonics() -> Float[Tensor, "orders rings 2 side side"]:
    """The rings e^{i m phi} of filters of order m = -1, 0, 1 on the pixels, as real and imaginary part, of norm 1."""
    phi = torch.arange(POINTS, dtype=torch.float64) * (2 * math.pi / POINTS)
    orders = torch.arange(1 - ORDERS, ORDERS)
    waves = torch.stack([(orders[:, None] * phi).cos(), (orders[:, None] * phi).sin()], 1)
    circle = torch.stack([phi.cos(), phi.sin()], 1)
    pixels = torch.stack([on_pixels(radius * circle, SIDE, SIGMA) for radius in RADII])
    rings = torch.einsum("mcp,rpyx->mrcyx", waves, pixels)
    return (rings / rings.square().sum((2, 3, 4), keepdim=True).sqrt()).float()


class HarmonicConv(nn.Module):
    """Cross-correlation of complex maps with filters W(r, phi) = R(r) e^{i (m phi + beta)}.

    A map has rotation order q if turning the image by theta turns it and multiplies it by e^{i q theta}. A filter of
    order m makes a map of order q + m of it, so the map of order p is the sum over all q of the answers of filters
    of order p - q. The radial profile R and the phase beta are learned, for each pair of orders and of maps; R is a
    number for each of three rings, and a ring is a circle of 64 points brought onto 7x7 pixels by a Gaussian.

    Signals are (batch, order x (real, imaginary) x map, height, width), so that one real convolution does it all.
    Images are real and of order 0: for them, ``of_images``, they are (batch, map, height, width).
    """

    rings: Tensor

    def __init__(self, in_maps: int, out_maps: int, of_images: bool = False) -> None:
        super().__init__()
        self.in_maps, self.out_maps, self.of_images = in_maps, out_maps, of_images
        in_orders = 1 if of_images else ORDERS
        filters = (ORDERS, in_orders, out_maps, in_maps)
        self.radial = nn.Parameter(torch.randn(*filters, len(RADII)) / math.sqrt(in_orders * in_maps))
        self.beta = nn.Parameter(2 * math.pi * torch.rand(filters))
        order = torch.arange(ORDERS)[:, None] - torch.arange(in_orders)
        self.register_buffer("rings", harmonics()[order + ORDERS - 1], persistent=False)

    def weight(self) -> Float[Tensor, "outs ins side side"]:
        """The filters as those of a real convolution: (a + ib)(c + id) = (ac - bd) + i (ad + bc)."""
        profile = torch.stack([self.radial * self.beta[..., None].cos(), self.radial * self.beta[..., None].sin()])
        c, s = torch.einsum("tpqoir,pqrcyx->tcpqoiyx", profile, self.rings).unbind(0)
        real, imaginary = c[0] - s[1], c[1] + s[0]
        parts = [torch.stack([real, imaginary], 1)]  # what a real part becomes
        if not self.of_images:
            parts.append(torch.stack([-imaginary, real], 1))
        return torch.stack(parts, 3).permute(0, 1, 4, 2, 3, 5, 6, 7).flatten(0, 2).flatten(1, 3)

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch outs height width"]:
        return F.conv2d(z, self.weight(), padding=SIDE // 2)

    def extra_repr(self) -> str:
        return f"{self.in_maps}, {self.out_maps}, of_images={self.of_images}"


def modulus(z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch orders 1 maps height width"]:
    """|z|, not quite 0 where z is."""
    return z.unflatten(1, (ORDERS, 2, -1)).square().sum(2, keepdim=True).add(SMALLEST).sqrt()


def with_modulus(
    z: Float[Tensor, "batch ins height width"],
    r: Float[Tensor, "batch orders 1 maps height width"],
    wanted: Float[Tensor, "batch orders 1 maps height width"],
) -> Float[Tensor, "batch ins height width"]:
    """z, whose modulus is r, with another one: phases, and so rotation orders, stay as they are."""
    return (z.unflatten(1, (ORDERS, 2, -1)) * (wanted / r)).flatten(1, 3)


class ComplexReLU(nn.Module):
    """ReLU(|z| + b) z / |z|, with one bias b a map for both orders: HCN[10] has 10 parameters (reading 22)."""

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(maps))

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch ins height width"]:
        r = modulus(z)
        return with_modulus(z, r, F.relu(r + self.bias[:, None, None]))


class ModulusNorm(nn.Module):
    """ReLU(BatchNorm(|z|)) z / |z|: the moduli of each order and map standardised over batch and pixels."""

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(ORDERS * maps)

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch ins height width"]:
        r = modulus(z)
        return with_modulus(z, r, F.relu(self.norm(r.flatten(1, 3))).view_as(r))


class MeanModulus(nn.Module):
    """The mean of |z| over pixels and orders, which no rotation changes, and a bias a map."""

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(maps))

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch maps"]:
        return modulus(z).mean((1, 2, 4, 5)) + self.bias


class HarmNet(Baseline):
    """Complex maps of rotation orders 0 and 1, whose moduli turn with the image and whose mean does not change.

    Table 1 names the filters; its caption says 'HRC[X6,X7] operates on the X7 neighborhood with X6 feature maps',
    which no filter of 20 x 20 pixels could. The numbers follow on one another, 1, 10, 10, 20, 20, as maps in and maps
    out do, and the paper keeps 'the default network structure' with TIGraNet's 10 and 20 filters, so we read them as
    those (reading 21). That structure is Worrall's: blocks of HRC-HCN-HRC, each with its moduli standardised at
    the end, mean pooling over 2x2 between blocks, then an HRC to the classes and the mean of its moduli. A block ends
    wherever an HRC follows an HRC, and with the last layer. The layer to the classes is implicit, as everywhere.

    Under quarter turns the answer is the same to rounding; under others as nearly as the pixels allow.

    Args:
        architecture: the paper's notation, the preset ``paper``, or a parsed value.
        num_classes: the number of classes.
        image_size: the height and width of the images, or the one number that both are.
        in_maps: channels of the images; the first HRC reads as many.

    >>> HarmNet("HRC[1,3]-HCN[3]-HRC[3,3]", num_classes=4, image_size=12)(torch.rand(2, 1, 12, 12)).shape
    torch.Size([2, 4])
    """

    NOTATION = HarmArchitecture

    def __init__(
        self,
        architecture: str | HarmArchitecture,
        num_classes: int,
        image_size: int | tuple[int, int],
        in_maps: int = 1,
    ) -> None:
        super().__init__(architecture, num_classes, image_size, in_maps)
        layers = self.architecture.layers
        seeing: list[nn.Module] = []
        maps = in_maps
        for number, layer in enumerate(layers, start=1):
            match layer:
                case HRC(reads, gives):
                    if reads != maps:
                        raise ValueError(
                            f"the images have {maps} channels, layer 1 ('{layer}') of '{self.architecture}' reads "
                            f"{reads}: write '{HRC(maps, gives)}'"
                        )
                    seeing.append(HarmonicConv(reads, gives, of_images=number == 1))
                    maps = gives
                    if number == len(layers):
                        seeing.append(ModulusNorm(gives))
                    elif isinstance(layers[number], HRC):
                        seeing += [ModulusNorm(gives), CentredMeanPool(2)]
                case HCN():
                    seeing.append(ComplexReLU(maps))
        self.filters = nn.Sequential(*seeing)
        self.classifier = nn.Sequential(HarmonicConv(maps, num_classes), MeanModulus(num_classes))
