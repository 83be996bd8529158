"""The products of gradients OP, MP and GP, and the residual block R, in operations that every exporter knows."""

import torch
from torch import nn

from tigranet.export.portable_grid import Images, PortableGrid, Vector
from tigranet.export.portable_spectral import PortableMixedConv, mixed_chebyshev_sum, standardising_affine
from tigranet.layers.gradient_product import GradientProduct
from tigranet.layers.product_layer import ProductLayer
from tigranet.layers.residual_product import ResidualProduct


class PortableProducts(nn.Module):
    """The layers :class:`tigranet.OrientedProduct`, :class:`MirrorProduct` and :class:`GradientProduct`.

    Args:
        layer: The layer to export.
    """

    def __init__(self, layer: ProductLayer) -> None:
        super().__init__()
        self.smoothings, self.large = layer.smoothings, layer.LARGE
        self.kinds = layer.KINDS
        self.needs_coordinates = not isinstance(layer, GradientProduct)
        mixtures = layer.mixtures.detach()
        weight = torch.cat([coefficient * mixtures for coefficient in layer.response])
        self.register_buffer("weight", weight[:, :, None, None])
        gain, offset = standardising_affine(layer.standardise)
        self.register_buffer("gain", gain[None, :, None, None])
        self.register_buffer("offset", offset[None, :, None, None])

    def forward(self, y: Images, grid: PortableGrid) -> Images:
        """Append products to maps.

        Args:
            y: Maps.
            grid: The grid.

        Returns:
            The maps, followed by the standardised and compressed products.
        """
        f, g = mixed_chebyshev_sum(self.weight, y, grid, self.smoothings).chunk(2, dim=1)
        products = self._oriented(f, g, grid) if self.needs_coordinates else grid.product_of_gradients(f, g)
        x = products * self.gain + self.offset
        return torch.cat((y, x / (1 + x.abs() / self.large).sqrt()), dim=1)

    def _oriented(self, f: Images, g: Images, grid: PortableGrid) -> Images:
        pairs = f.shape[1]
        first = grid.gradient(torch.cat((f, g), dim=1))
        second = grid.twist(first)
        parts = []
        for vector in (first, second):
            of_f = Vector(vector.x[:, :pairs], vector.y[:, :pairs])
            of_g = Vector(vector.x[:, pairs:], vector.y[:, pairs:])
            parts.append(of_f.x * of_g.x + of_f.y * of_g.y)
            if self.kinds == 4:
                parts.append(of_f.y * of_g.x - of_f.x * of_g.y)
        return torch.cat(parts, dim=1)


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
