"""Residual block of oriented products."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.mixed_conv import MixedConv
from tigranet.layers.oriented_product import OrientedProduct


class ResidualProduct(nn.Module):
    r"""Add to maps what a convolution computes from them and from their oriented products.

    .. math:: z = y + \mathrm{MixedConv}(\mathrm{OrientedProduct}(y))

    Args:
        maps: Number of maps.
        pairs: Number of pairs of the products, see :class:`OrientedProduct`.
        smoothings: How often the mixtures are smoothed, see :class:`ProductLayer`.
        degree: Degree of the polynomials of the convolution, see :class:`MixedConv`.

    Shape:
        ``y`` (batch, maps, nodes), ``omega`` (batch, 1, nodes) -> (batch, maps, nodes).

    Example:
        >>> import torch
        >>> from tigranet import GridLaplacian
        >>> ResidualProduct(8, pairs=4)(torch.rand(2, 8, 20), GridLaplacian(4, 5)).shape
        torch.Size([2, 8, 20])
    """

    def __init__(self, maps: int, pairs: int, smoothings: int = 1, degree: int = 3) -> None:
        super().__init__()
        self.out_maps = maps
        self.products = OrientedProduct(maps, pairs, smoothings)
        self.conv = MixedConv(self.products.out_maps, maps, degree)

    def forward(
        self,
        y: Float[Tensor, "batch maps nodes"],
        laplacian: Laplacian,
        omega: Bool[Tensor, "batch 1 nodes"] | None = None,
    ) -> Float[Tensor, "batch maps nodes"]:
        """Add the output of the convolution to the maps.

        Args:
            y: Maps.
            laplacian: The grid.
            omega: Nodes of interest; the result is zero elsewhere. None for all nodes.

        Returns:
            The sum.
        """
        z = y + self.conv(self.products(y, laplacian), laplacian)
        return z if omega is None else z * omega
