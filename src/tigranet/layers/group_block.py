"""Residual block of two group convolutions."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.orientation_norm import OrientationNorm
from tigranet.layers.steerable_conv import GroupConv


class GroupBlock(nn.Module):
    r"""Add to features what two group convolutions compute from them.

    .. math:: z = y + C_2\, n_2(C_1\, n_1(y)),

    where C are group convolutions (:class:`GroupConv`) and n is batch normalisation with ReLU
    (:class:`OrientationNorm`). A deep network of such blocks trains well, because each block only has to learn a
    correction (He et al. 2016, "Identity mappings in deep residual networks").

    Args:
        maps: Number of maps: N per feature.
        orientations: Number N of orientations, a multiple of 4.
        size: Side length of the filters in pixels, odd.

    Shape:
        ``y`` (batch, maps, nodes), ``omega`` (batch, 1, nodes) -> (batch, maps, nodes).

    Example:
        >>> import torch
        >>> from tigranet import GridLaplacian
        >>> GroupBlock(24, orientations=8, size=3)(torch.rand(2, 24, 20), GridLaplacian(4, 5)).shape
        torch.Size([2, 24, 20])
    """

    def __init__(self, maps: int, orientations: int, size: int) -> None:
        super().__init__()
        features = maps // orientations
        self.out_maps = maps
        self.norms = nn.ModuleList(OrientationNorm(features, orientations) for _ in range(2))
        self.convs = nn.ModuleList(GroupConv(maps, features, orientations, size) for _ in range(2))

    def forward(
        self,
        y: Float[Tensor, "batch maps nodes"],
        laplacian: Laplacian,
        omega: Bool[Tensor, "batch 1 nodes"] | None = None,
    ) -> Float[Tensor, "batch maps nodes"]:
        """Add the output of the two convolutions to the features.

        Args:
            y: Features.
            laplacian: The grid.
            omega: Nodes of interest; the result is zero elsewhere. None for all nodes.

        Returns:
            The sum.
        """
        z = y
        for norm, conv in zip(self.norms, self.convs, strict=True):
            z = conv(z, laplacian, norm=norm)
        z = y + z
        return z if omega is None else z * omega
