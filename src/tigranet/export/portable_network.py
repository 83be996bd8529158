"""A whole network in operations that every exporter knows, for images of any size."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.export.portable_grid import GridOptions, Images, PortableGrid, Stencils, positions
from tigranet.export.portable_group import PortableGroupBlock, PortableGroupConv, PortableOrientationMax
from tigranet.export.portable_pooling import PortablePool
from tigranet.export.portable_products import PortableProducts, PortableResidualProduct
from tigranet.export.portable_spectral import PortableMixedConv, PortableSpectralConv
from tigranet.export.portable_statistics import PortableStatistics
from tigranet.layers.background_margin import add_margin
from tigranet.layers.coarsen import Coarsen
from tigranet.layers.disc_window import IMAGE_SOFTNESS, MAP_REACH, MAP_SOFTNESS
from tigranet.layers.dynamic_pool import DynamicPool
from tigranet.layers.group_block import GroupBlock
from tigranet.layers.mixed_conv import MixedConv
from tigranet.layers.orientation_max import OrientationMax
from tigranet.layers.product_layer import ProductLayer
from tigranet.layers.residual_product import ResidualProduct
from tigranet.layers.spectral_conv import SpectralConv
from tigranet.layers.standardise import Standardise
from tigranet.layers.steerable_conv import SteerableConv
from tigranet.model import TIGraNet


class PortableNetwork(nn.Module):
    """The function of a network in evaluation mode, written for exporters.

    The layers of :mod:`tigranet.layers` call fused kernels and keep constants for each image size; an exporter can
    follow neither. This network has the same weights and computes the same logits, up to rounding, from convolutions
    and elementwise operations whose shapes may be symbols. It has no gradients.

    Args:
        network: The network to export.

    Shape:
        (batch, in_maps, height, width) -> (batch, classes).

    Example:
        >>> from tigranet import TIGraNet
        >>> network = TIGraNet("MC[4,2]-OP[2]-S[1]", num_classes=3).eval()
        >>> images = torch.rand(2, 1, 9, 12)
        >>> torch.allclose(PortableNetwork(network)(images), network(images), atol=1e-5)
        True
    """

    def __init__(self, network: TIGraNet) -> None:
        super().__init__()
        self.window, self.margin = network.window, network.margin
        self.stencils = Stencils(GridOptions(network.neighbours, network.boundary, network.diagonal))
        self.layers = nn.ModuleList(_portable(layer) for layer in network.graph_layers)
        self.statistics = PortableStatistics(network.statistics)
        self.classifier = network.classifier
        self.standardise_images = _portable_standardise(network.standardise_images, axes=2)
        self.standardise = _portable_standardise(network.standardise, axes=0)
        self.eval().requires_grad_(False)

    def forward(self, images: Images) -> Float[Tensor, "batch classes"]:
        """Compute the logits of images.

        Args:
            images: Images with values in [0, 1].

        Returns:
            One logit per class.
        """
        z = images
        if self.window == "disc":
            z = _window_images(z)
        if self.margin:
            z = add_margin(z, self.margin)
        z = self.standardise_images(z)
        grid = PortableGrid(self.stencils, z)
        active: Tensor | None = None
        omega: Bool[Tensor, "batch 1 height width"] | None = None
        for layer in self.layers:
            match layer:
                case PortablePool():
                    active = layer(z, omega)
                    omega = active.any(dim=1, keepdim=True)
                case Coarsen():
                    z, active = grid.coarsen(z), None
                    omega = None if omega is None else grid.coarsen_nodes(omega)
                    grid = PortableGrid(self.stencils, z)
                case _:
                    z, active = layer(z, grid), None
                    if omega is not None:
                        z = z * omega
                    if self.window == "disc":
                        z = z * _disc(z, MAP_SOFTNESS, MAP_REACH)
        phi = self.statistics(z if active is None else z * active, grid)
        return self.classifier(self.standardise(phi))


class PortableStandardise(nn.Module):
    """Standardisation by the running estimates.

    Args:
        layer: The standardisation.
        axes: Number of axes of a map: 2 for images, 0 for statistics.

    Shape:
        (batch, statistics) or (batch, maps, height, width) -> the same.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, layer: Standardise, axes: int) -> None:
        super().__init__()
        shape = (-1, *(1,) * axes)
        self.register_buffer("mean", layer.mean.reshape(shape))
        self.register_buffer("scale", (layer.variance + layer.eps).rsqrt().reshape(shape))

    def forward(self, x: Float[Tensor, "batch maps *size"]) -> Float[Tensor, "batch maps *size"]:
        """Standardise statistics or images.

        Args:
            x: Statistics, or images.

        Returns:
            The standardised numbers.
        """
        return (x - self.mean) * self.scale


def _portable_standardise(layer: nn.Module, axes: int) -> nn.Module:
    """Return the portable version of a standardisation, or the identity of networks without one."""
    return PortableStandardise(layer, axes) if isinstance(layer, Standardise) else layer


def _portable(layer: nn.Module) -> nn.Module:
    """Return the portable version of a graph layer."""
    match layer:
        case SpectralConv():
            return PortableSpectralConv(layer)
        case MixedConv():
            return PortableMixedConv(layer)
        case ProductLayer():
            return PortableProducts(layer)
        case ResidualProduct():
            return PortableResidualProduct(layer)
        case SteerableConv():
            return PortableGroupConv(layer)
        case GroupBlock():
            return PortableGroupBlock(layer)
        case OrientationMax():
            return PortableOrientationMax(layer)
        case DynamicPool():
            return PortablePool(layer)
        case Coarsen():
            return layer
    raise TypeError(f"expected a layer that can be exported, got {layer!r}")


def _disc(images: Images, softness: float, reach: float = 0.0) -> Float[Tensor, "height width"]:
    """Compute :func:`tigranet.layers.disc_window.disc` for images whose size may be symbolic."""
    axes = images[0, 0, :, 0], images[0, 0, 0, :]
    coordinates = [positions(torch.ones_like(axis)) for axis in axes]
    lengths = [coordinate.amax() + 1 for coordinate in coordinates]
    y, x = (coordinate - (length - 1) / 2 for coordinate, length in zip(coordinates, lengths, strict=True))
    radius = (y.square().unsqueeze(1) + x.square()).sqrt()
    return ((torch.minimum(*lengths) / 2 + reach - radius) / softness).clamp(0, 1)


def _window_images(images: Images) -> Images:
    """Compute :func:`tigranet.layers.disc_window.window_images` for images whose size may be symbolic."""
    window = _disc(images, IMAGE_SOFTNESS)
    mean = (window * images).sum((2, 3), keepdim=True) / window.sum().clamp(min=1e-6)
    return mean + window * (images - mean)
