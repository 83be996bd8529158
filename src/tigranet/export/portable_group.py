"""The group convolutions LC and GC, the block GB and the maximum MO in operations that every exporter knows."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.export.portable_grid import Images, OtherMaps, PortableGrid
from tigranet.export.portable_spectral import standardising_affine
from tigranet.layers.group_block import GroupBlock
from tigranet.layers.orientation_max import OrientationMax
from tigranet.layers.orientation_norm import OrientationNorm
from tigranet.layers.steerable_conv import SteerableConv


class PortableGroupConv(nn.Module):
    """The layers :class:`LiftingConv` and :class:`GroupConv`: the rotated filters are constants.

    Args:
        layer: The layer to export.
        norm: A normalisation with ReLU that follows the convolution. It becomes part of the filters.
    """

    filters: Float[Tensor, "out_maps in_maps size size"]
    bias: Float[Tensor, " out_maps"] | None

    def __init__(self, layer: SteerableConv, norm: OrientationNorm | None = None) -> None:
        super().__init__()
        self.border = layer.size // 2
        self.rectified = norm is not None
        filters, bias = layer.filters().detach(), None
        if norm is not None:
            gain, bias = normalising_affine(norm)
            filters = filters * gain[:, None, None, None]
        self.register_buffer("filters", filters)
        self.register_buffer("bias", bias)

    def forward(self, y: Images, grid: PortableGrid) -> OtherMaps:
        """Convolve maps with the filters.

        Args:
            y: Maps.
            grid: The grid.

        Returns:
            The output maps.
        """
        z = F.conv2d(grid.pad(y, self.border), self.filters, self.bias)
        return F.relu(z) if self.rectified else z


class PortableOrientationNorm(nn.Module):
    """The layer :class:`OrientationNorm` in evaluation mode.

    Args:
        layer: The layer to export.
    """

    gain: Float[Tensor, "1 maps 1 1"]
    offset: Float[Tensor, "1 maps 1 1"]

    def __init__(self, layer: OrientationNorm) -> None:
        super().__init__()
        gain, offset = normalising_affine(layer)
        self.register_buffer("gain", gain[None, :, None, None])
        self.register_buffer("offset", offset[None, :, None, None])

    def forward(self, y: Images) -> Images:
        """Normalise features and apply ReLU.

        Args:
            y: Features.

        Returns:
            Features of the same shape.
        """
        return F.relu(y * self.gain + self.offset)


class PortableGroupBlock(nn.Module):
    """The layer :class:`GroupBlock`. The second normalisation is part of the first convolution.

    Args:
        layer: The layer to export.
    """

    def __init__(self, layer: GroupBlock) -> None:
        super().__init__()
        first_norm, second_norm = (norm for norm in layer.norms if isinstance(norm, OrientationNorm))
        first_conv, second_conv = (conv for conv in layer.convs if isinstance(conv, SteerableConv))
        self.norm = PortableOrientationNorm(first_norm)
        self.first, self.second = PortableGroupConv(first_conv, second_norm), PortableGroupConv(second_conv)

    def forward(self, y: Images, grid: PortableGrid) -> Images:
        """Add the output of the two convolutions to the features.

        Args:
            y: Features.
            grid: The grid.

        Returns:
            The sum.
        """
        return y + self.second(self.first(self.norm(y), grid), grid)


class PortableOrientationMax(nn.Module):
    """The layer :class:`OrientationMax`. The second normalisation is part of the convolution.

    Args:
        layer: The layer to export.
    """

    def __init__(self, layer: OrientationMax) -> None:
        super().__init__()
        self.orientations, self.out_maps = layer.orientations, layer.out_maps
        self.norm = PortableOrientationNorm(layer.norm)
        self.conv = PortableGroupConv(layer.conv, layer.out_norm)

    def forward(self, y: Images, grid: PortableGrid) -> OtherMaps:
        """Compute the largest value of all orientations.

        Args:
            y: Features.
            grid: The grid.

        Returns:
            The invariant maps.
        """
        z = self.conv(self.norm(y), grid)
        return z.unflatten(1, (self.orientations, self.out_maps)).amax(1)


def normalising_affine(norm: OrientationNorm) -> tuple[Float[Tensor, " maps"], Float[Tensor, " maps"]]:
    r"""Write the normalisation by known moments, before its ReLU, as :math:`x \mapsto g x + o`.

    Args:
        norm: The normalisation.

    Returns:
        The factor g and the term o of each map, ordered (orientation, feature).
    """
    gain, offset = standardising_affine(norm)
    scale, bias = norm.scale.detach(), norm.bias.detach()
    return (scale * gain).repeat(norm.orientations), (scale * offset + bias).repeat(norm.orientations)
