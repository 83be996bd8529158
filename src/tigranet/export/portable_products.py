"""The products of gradients OP, MP and GP, and the residual block R, in operations that every exporter knows."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.export.portable_grid import Images, OtherMaps, PortableGrid, Vector
from tigranet.export.portable_spectral import PortableChebyshevSum, PortableMixedConv, standardising_affine
from tigranet.layers.gradient_product import GradientProduct
from tigranet.layers.product_layer import ProductLayer
from tigranet.layers.residual_product import ResidualProduct


class PortableProducts(nn.Module):
    """The layers :class:`tigranet.OrientedProduct`, :class:`MirrorProduct` and :class:`GradientProduct`.

    Args:
        layer: The layer to export.
    """

    gain: Float[Tensor, "1 products 1 1"]
    offset: Float[Tensor, "1 products 1 1"]

    def __init__(self, layer: ProductLayer) -> None:
        super().__init__()
        self.kinds, self.large = layer.KINDS, layer.LARGE
        self.needs_coordinates = not isinstance(layer, GradientProduct)
        self.f, self.g = (
            PortableChebyshevSum([coefficient * mixtures for coefficient in layer.response])
            for mixtures in layer.mixtures.detach().chunk(2)
        )
        gain, offset = standardising_affine(layer.standardise)
        self.register_buffer("gain", gain[None, :, None, None])
        self.register_buffer("offset", offset[None, :, None, None])

    def forward(self, y: Images, grid: PortableGrid) -> OtherMaps:
        """Append products to maps.

        Args:
            y: Maps.
            grid: The grid.

        Returns:
            The maps, followed by the standardised and compressed products.
        """
        f, g = self.f(y, grid), self.g(y, grid)
        products = self._oriented(f, g, grid) if self.needs_coordinates else grid.product_of_gradients(f, g)
        x = products * self.gain + self.offset
        return torch.cat((y, x / (1 + x.abs() * (1 / self.large)).sqrt()), dim=1)

    def _oriented(self, f: Images, g: Images, grid: PortableGrid) -> OtherMaps:
        of_f, of_g = grid.gradient(f), grid.gradient(g)
        first = self._kinds(of_f, of_g)
        return torch.cat((*first, *self._kinds(grid.twist(of_f), grid.twist(of_g))), dim=1)

    def _kinds(self, f: Vector, g: Vector) -> list[Images]:
        """Return the real part of f times the conjugate of g, and the imaginary part if the layer has it."""
        real = f.x * g.x + f.y * g.y
        return [real, f.y * g.x - f.x * g.y] if self.kinds == 4 else [real]


class PortableResidualProduct(nn.Module):
    """The layer :class:`tigranet.layers.ResidualProduct`.

    Args:
        layer: The layer to export.
    """

    def __init__(self, layer: ResidualProduct) -> None:
        super().__init__()
        self.products, self.conv = PortableProducts(layer.products), PortableMixedConv(layer.conv)

    def forward(self, y: Images, grid: PortableGrid) -> Images:
        """Add the output of the convolution to the maps.

        Args:
            y: Maps.
            grid: The grid.

        Returns:
            The sum.
        """
        return y + self.conv(self.products(y, grid), grid)
