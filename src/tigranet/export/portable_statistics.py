"""The statistical layer S in operations that every exporter knows."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.export.portable_grid import Images, PortableGrid
from tigranet.export.portable_spectral import chebyshev
from tigranet.layers.statistics import Statistics


class PortableStatistics(nn.Module):
    """The layer :class:`tigranet.Statistics`: mean and variance of the magnitude of Chebyshev polynomials.

    Args:
        layer: The layer to export.
    """

    def __init__(self, layer: Statistics) -> None:
        super().__init__()
        self.order = layer.order

    def forward(self, z: Images, grid: PortableGrid) -> Float[Tensor, "batch statistics"]:
        """Compute the statistics.

        Args:
            z: Maps, which are zero outside their active nodes.
            grid: The grid.

        Returns:
            The statistics, map after map, order after order, mean and variance.
        """
        phi = []
        for t in chebyshev(z, grid, self.order):
            magnitude = t.abs()
            mean = magnitude.mean((2, 3), keepdim=True)
            variance = (magnitude - mean).square().mean((2, 3))
            phi += [mean.flatten(1), variance]
        return torch.stack(phi, dim=-1).flatten(1)
