"""Maximum over the orientations: from features with orientations to invariant maps."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.orientation_norm import OrientationNorm
from tigranet.layers.steerable_conv import GroupConv
from tigranet.ops import orientation_max


class OrientationMax(nn.Module):
    r"""Mix features at each pixel, and keep the largest value of all orientations.

    .. math:: z_o = \max_j\, n_2(C\, n_1(y))_{o,j},

    where C is a group convolution with filters of one pixel, and n is batch normalisation with ReLU. When the image is
    rotated by a multiple of :math:`2 \pi / N`, the orientations are permuted, and the maps z only move.

    Args:
        in_maps: Number of input maps: N per feature.
        out_maps: Number of output maps.
        orientations: Number N of orientations, a multiple of 4.

    Shape:
        ``y`` (batch, in_maps, nodes), ``omega`` (batch, 1, nodes) -> (batch, out_maps, nodes).

    Example:
        >>> import torch
        >>> from tigranet import GridLaplacian
        >>> OrientationMax(24, 10, orientations=8)(torch.rand(2, 24, 20), GridLaplacian(4, 5)).shape
        torch.Size([2, 10, 20])
    """

    def __init__(self, in_maps: int, out_maps: int, orientations: int) -> None:
        super().__init__()
        self.out_maps, self.orientations = out_maps, orientations
        self.norm = OrientationNorm(in_maps // orientations, orientations)
        self.conv = GroupConv(in_maps, out_maps, orientations, size=1)
        self.out_norm = OrientationNorm(out_maps, orientations)

    def forward(
        self,
        y: Float[Tensor, "batch in_maps nodes"],
        laplacian: Laplacian,
        omega: Bool[Tensor, "batch 1 nodes"] | None = None,
    ) -> Float[Tensor, "batch out_maps nodes"]:
        """Compute the maximum.

        Args:
            y: Features.
            laplacian: The grid.
            omega: Nodes of interest; the result is zero elsewhere. None for all nodes.

        Returns:
            The invariant maps.
        """
        z = self.out_norm(self.conv(y, laplacian, norm=self.norm))
        z = orientation_max(z, self.orientations).to(self.conv.weight.dtype)
        return z if omega is None else z * omega
