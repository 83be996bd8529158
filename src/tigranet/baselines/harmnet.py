"""HarmNet: the harmonic network (Worrall et al., 2017) with the architecture of the paper's Table 1."""

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
"""Number of rotation orders: maps of order 0 and of order 1."""
FILTER_SIDE, RING_RADII, SIGMA = 7, (2 / 3, 4 / 3, 2.0), 0.7
"""Side length of a filter in pixels, radii of its rings, and width of the Gaussian that resamples them."""
RING_POINTS = 64
"""Number of points of a ring. It is a multiple of 4, so quarter turns are exact."""
MODULUS_EPSILON = 1e-4
"""Added to squared moduli. Numbers much smaller than its square root have no meaningful phase."""


@dataclass(frozen=True)
class HRC(Layer):
    """Harmonic cross-correlation between maps of all rotation orders."""

    in_maps: int
    """Number of input maps of each rotation order."""
    out_maps: int
    """Number of output maps of each rotation order."""


@dataclass(frozen=True)
class HCN(Layer):
    """Complex nonlinearity."""

    maps: int
    """Number of maps of each rotation order. Each has one bias."""


@dataclass(frozen=True)
class HarmArchitecture(Notation):
    """A harmonic network in the paper's notation: HRC layers, each optionally followed by an HCN layer.

    Args:
        layers: The layers in order.

    Raises:
        ValueError: If a layer does not read the number of maps of the layer before it.

    Example:
        >>> str(HarmArchitecture.parse("paper"))
        'HRC[1,10]-HCN[10]-HRC[10,10]-HRC[10,20]-HCN[20]-HRC[20,20]'
    """

    FIRST = (HRC,)
    FOLLOW: ClassVar = {HRC: (HRC, HCN), HCN: (HRC,)}
    NEEDED = HRC
    ORDER = "a HarmNet has HRC layers, each optionally followed by an HCN layer"
    PRESETS: ClassVar = {
        "paper": "HRC[1,10]-HCN[10]-HRC[10,10]-HRC[10,20]-HCN[20]-HRC[20,20]",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        maps = None
        for number, layer in enumerate(self.layers, start=1):
            numbers = astuple(layer)
            in_maps, out_maps = numbers[0], numbers[-1]
            if maps not in (None, in_maps):
                raise ValueError(
                    f"layer {number} ('{layer}') of '{self}' reads {in_maps} maps, "
                    f"but the layer before it has {maps} output maps"
                )
            maps = out_maps


def harmonic_rings() -> Float[Tensor, "orders rings 2 side side"]:
    r"""Resample the rings :math:`e^{i m \phi}` of filters of order m = -1, 0, 1 on pixels.

    Returns:
        Real and imaginary part of each ring, normalised to norm 1.
    """
    phi = torch.arange(RING_POINTS, dtype=torch.float64) * (2 * math.pi / RING_POINTS)
    orders = torch.arange(1 - ORDERS, ORDERS)
    waves = torch.stack([(orders[:, None] * phi).cos(), (orders[:, None] * phi).sin()], 1)
    circle = torch.stack([phi.cos(), phi.sin()], 1)
    pixels = torch.stack([on_pixels(radius * circle, FILTER_SIDE, SIGMA) for radius in RING_RADII])
    rings = torch.einsum("mcp,rpyx->mrcyx", waves, pixels)
    return (rings / rings.square().sum((2, 3, 4), keepdim=True).sqrt()).float()


class HarmonicConv(nn.Module):
    r"""Cross-correlation of complex maps with filters :math:`W(r, \phi) = R(r) e^{i (m \phi + \beta)}`.

    A map has rotation order q if rotating the image by :math:`\theta` rotates the map and multiplies it by
    :math:`e^{i q \theta}`. A filter of order m turns it into a map of order q + m, so the output map of order p is the
    sum over all q of the results of filters of order p - q. The radial profile R and the phase :math:`\beta` are
    learned for each pair of orders and each pair of maps. R has one weight for each of three rings. A ring is a circle
    of 64 points, which a Gaussian resamples on 7x7 pixels.

    One real convolution computes all orders and both parts of the complex numbers.

    Args:
        in_maps: Number of input maps of each order.
        out_maps: Number of output maps of each order.
        from_images: Whether the input is an image, which is real and has order 0 only.

    Shape:
        - Input: (batch, order x (real, imaginary) x in_maps, height, width), or (batch, in_maps, height, width) for
          images.
        - Output: (batch, order x (real, imaginary) x out_maps, height, width).
    """

    rings: Tensor

    def __init__(self, in_maps: int, out_maps: int, from_images: bool = False) -> None:
        super().__init__()
        self.in_maps, self.out_maps, self.from_images = in_maps, out_maps, from_images
        in_orders = 1 if from_images else ORDERS
        shape = (ORDERS, in_orders, out_maps, in_maps)
        self.radial = nn.Parameter(torch.randn(*shape, len(RING_RADII)) / math.sqrt(in_orders * in_maps))
        self.beta = nn.Parameter(2 * math.pi * torch.rand(shape))
        filter_order = torch.arange(ORDERS)[:, None] - torch.arange(in_orders)
        self.register_buffer("rings", harmonic_rings()[filter_order + ORDERS - 1], persistent=False)

    def weight(self) -> Float[Tensor, "outs ins side side"]:
        """Return the filters of the equivalent real convolution: (a + ib)(c + id) = (ac - bd) + i (ad + bc).

        Returns:
            Filters for all orders and for real and imaginary parts.
        """
        profile = torch.stack([self.radial * self.beta[..., None].cos(), self.radial * self.beta[..., None].sin()])
        c, s = torch.einsum("tpqoir,pqrcyx->tcpqoiyx", profile, self.rings).unbind(0)
        real, imaginary = c[0] - s[1], c[1] + s[0]
        parts = [torch.stack([real, imaginary], 1)]  # applied to the real part of the input
        if not self.from_images:
            parts.append(torch.stack([-imaginary, real], 1))  # applied to the imaginary part of the input
        return torch.stack(parts, 3).permute(0, 1, 4, 2, 3, 5, 6, 7).flatten(0, 2).flatten(1, 3)

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch outs height width"]:
        """Convolve the maps, with zero padding.

        Args:
            z: Complex maps of all orders, or images.

        Returns:
            Complex maps of all orders.
        """
        return F.conv2d(z, self.weight(), padding=FILTER_SIDE // 2)

    def extra_repr(self) -> str:
        """Return the constructor arguments for ``repr``."""
        return f"{self.in_maps}, {self.out_maps}, from_images={self.from_images}"


def modulus(z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch orders 1 maps height width"]:
    """Return the modulus of complex maps, slightly more than 0 where they are 0, so that its gradient is finite.

    Args:
        z: Complex maps of all orders.

    Returns:
        The moduli.
    """
    return z.unflatten(1, (ORDERS, 2, -1)).square().sum(2, keepdim=True).add(MODULUS_EPSILON).sqrt()


def replace_modulus(
    z: Float[Tensor, "batch ins height width"],
    old: Float[Tensor, "batch orders 1 maps height width"],
    new: Float[Tensor, "batch orders 1 maps height width"],
) -> Float[Tensor, "batch ins height width"]:
    """Change the modulus of complex maps. Their phases, and therefore their rotation orders, do not change.

    Args:
        z: Complex maps of all orders.
        old: Their moduli.
        new: The new moduli.

    Returns:
        Complex maps of all orders.
    """
    return (z.unflatten(1, (ORDERS, 2, -1)) * (new / old)).flatten(1, 3)


class ComplexReLU(nn.Module):
    """The nonlinearity ReLU(|z| + b) z / |z|.

    Both rotation orders of a map share one bias b, so HCN[10] has 10 parameters (reading 22).

    Args:
        maps: Number of maps of each order.
    """

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(maps))

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch ins height width"]:
        """Apply the nonlinearity.

        Args:
            z: Complex maps of all orders.

        Returns:
            Maps of the same shape.
        """
        r = modulus(z)
        return replace_modulus(z, r, F.relu(r + self.bias[:, None, None]))


class ModulusNorm(nn.Module):
    """The normalisation ReLU(BatchNorm(|z|)) z / |z|, with statistics of each order and map over batch and pixels.

    Args:
        maps: Number of maps of each order.
    """

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(ORDERS * maps)

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch ins height width"]:
        """Normalise the moduli.

        Args:
            z: Complex maps of all orders.

        Returns:
            Maps of the same shape.
        """
        r = modulus(z)
        return replace_modulus(z, r, F.relu(self.norm(r.flatten(1, 3))).view_as(r))


class MeanModulus(nn.Module):
    """The mean of |z| over pixels and orders, which rotations do not change, plus one bias per map.

    Args:
        maps: Number of maps of each order.
    """

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(maps))

    def forward(self, z: Float[Tensor, "batch ins height width"]) -> Float[Tensor, "batch maps"]:
        """Average the moduli.

        Args:
            z: Complex maps of all orders.

        Returns:
            One number per map.
        """
        return modulus(z).mean((1, 2, 4, 5)) + self.bias


class HarmNet(Baseline):
    """Complex maps of rotation orders 0 and 1, whose moduli rotate with the image and whose mean modulus is invariant.

    Table 1 names the filters. Its caption says 'HRC[X6,X7] operates on the X7 neighborhood with X6 feature maps', but
    filters of 20 x 20 pixels are not plausible. The numbers 1, 10, 10, 20, 20 form a chain, like numbers of input and
    output maps, and the paper keeps 'the default network structure' with the 10 and 20 filters of TIGraNet. We
    therefore read them as input and output maps (reading 21). The default structure is Worrall's: blocks of
    HRC-HCN-HRC with normalised moduli at the end, 2x2 mean pooling between blocks, then an HRC to the classes and the
    mean of its moduli. A block ends where an HRC follows an HRC, and at the last layer. The layer to the classes is
    implicit, as in the other networks.

    Quarter turns change the logits by rounding errors only. Other rotations are approximated as well as the pixels
    allow.

    Args:
        architecture: The paper's notation, the preset ``paper``, or a parsed value.
        num_classes: Number of classes.
        image_size: Height and width of the images, or one number for square images.
        in_maps: Number of channels of the images, which must be the first number of the first HRC.

    Raises:
        ValueError: If the architecture is invalid or its first layer reads another number of channels.

    Example:
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
        modules: list[nn.Module] = []
        maps = in_maps
        for number, layer in enumerate(layers, start=1):
            match layer:
                case HRC(expected_maps, out_maps):
                    if expected_maps != maps:
                        raise ValueError(
                            f"layer 1 ('{layer}') of '{self.architecture}' reads {expected_maps} channels, "
                            f"but in_maps is {maps}: write '{HRC(maps, out_maps)}'"
                        )
                    modules.append(HarmonicConv(maps, out_maps, from_images=number == 1))
                    maps = out_maps
                    if number == len(layers):
                        modules.append(ModulusNorm(maps))
                    elif isinstance(layers[number], HRC):
                        modules += [ModulusNorm(maps), CentredMeanPool(2)]
                case HCN():
                    modules.append(ComplexReLU(maps))
        self.filters = nn.Sequential(*modules)
        self.classifier = nn.Sequential(HarmonicConv(maps, num_classes), MeanModulus(num_classes))
