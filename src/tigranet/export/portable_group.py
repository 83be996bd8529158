"""The group convolutions LC and GC, the block GB and the maximum MO in operations that every exporter knows."""

import torch.fx
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.export.portable_grid import Images, OtherMaps, PortableGrid
from tigranet.export.portable_spectral import standardising_affine
from tigranet.layers.group_block import GroupBlock
from tigranet.layers.orientation_max import OrientationMax
from tigranet.layers.orientation_norm import OrientationNorm
from tigranet.layers.steerable_conv import SteerableConv
from tigranet.ops.group_convolution import orientation_differences


class PortableGroupConv(nn.Module):
    """The layers :class:`LiftingConv` and :class:`GroupConv`.

    The rotated filters are constants, up to 16 times as large as the weights that they are computed from. A format
    whose programs compute constants when they are loaded can store the weights instead, see
    :func:`convolve_with_rotations`.

    Args:
        layer: The layer to export.
        norm: A normalisation with ReLU that follows the convolution. It becomes part of the filters.
    """

    filters: Float[Tensor, "out_maps in_maps size size"]
    weight: Float[Tensor, "out_features in_orientations in_features basis"]
    differences: Int[Tensor, "orientations in_orientations"]
    basis: Float[Tensor, "orientations 1 1 basis pixels"]
    bias: Float[Tensor, " out_maps"] | None

    def __init__(self, layer: SteerableConv, norm: OrientationNorm | None = None) -> None:
        super().__init__()
        self.border = layer.size // 2
        self.rectified = norm is not None
        filters, weight, bias = layer.filters().detach(), layer.weight.detach(), None
        if norm is not None:
            gain, bias = normalising_affine(norm)
            filters = filters * gain[:, None, None, None]
            weight = weight * gain[: layer.out_features, None, None, None]  # the same for all orientations
        self.register_buffer("filters", filters)
        self.register_buffer("weight", weight.permute(0, 2, 1, 3).contiguous())
        differences = orientation_differences(layer.orientations, layer.in_orientations, layer.weight.device)
        self.register_buffer("differences", differences)
        self.register_buffer("basis", layer.basis.to(weight.dtype)[:, None, None])
        self.register_buffer("bias", bias)

    def forward(self, y: Images, grid: PortableGrid) -> OtherMaps:
        """Convolve maps with the filters.

        Args:
            y: Maps.
            grid: The grid.

        Returns:
            The output maps.
        """
        factors = self.weight, self.differences, self.basis
        z = convolve_with_rotations(grid.pad(y, self.border), self.filters, self.bias, *factors)
        return F.relu(z) if self.rectified else z


@torch.fx.wrap  # One operation of the exported graph, which is written in two ways.
def convolve_with_rotations(
    y: Float[Tensor, "batch in_maps height width"],
    filters: Float[Tensor, "out_maps in_maps size size"],
    bias: Float[Tensor, " out_maps"] | None,
    weight: Float[Tensor, "out_features in_orientations in_features basis"],
    differences: Int[Tensor, "orientations in_orientations"],
    basis: Float[Tensor, "orientations 1 1 basis pixels"],
) -> Float[Tensor, "batch out_maps new_height new_width"]:
    """Convolve maps with the filters of a group convolution.

    PyTorch's programs use the filters as they are. The translation to ONNX computes them from the last three arguments,
    as :meth:`SteerableConv.filters` does: the file is smaller, and a runtime computes them once, when it is loaded.

    Args:
        y: Maps with a border.
        filters: The filters.
        bias: A number to add to each output map.
        weight: The learned weights, with the normalisation that follows.
        differences: The entry of the weights for each output and input orientation.
        basis: The circular harmonics, rotated to each orientation.

    Returns:
        The output maps.
    """
    return F.conv2d(y, filters, bias)


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
