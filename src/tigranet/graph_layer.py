"""From a layer of the notation to its module, and what it computes."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.architecture import DP, GB, GC, GP, LC, MC, MO, MP, OP, SC, D, R
from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.coarsen import Coarsen
from tigranet.layers.dynamic_pool import DynamicPool, Ties
from tigranet.layers.gradient_product import GradientProduct
from tigranet.layers.group_block import GroupBlock
from tigranet.layers.mirror_product import MirrorProduct
from tigranet.layers.mixed_conv import MixedConv
from tigranet.layers.orientation_max import OrientationMax
from tigranet.layers.oriented_product import OrientedProduct
from tigranet.layers.residual_product import ResidualProduct
from tigranet.layers.spectral_conv import SpectralConv
from tigranet.layers.steerable_conv import GroupConv, LiftingConv
from tigranet.notation import Layer


class Maps(NamedTuple):
    """The output of one graph layer."""

    layer: Layer
    """The layer in the notation."""
    z: Float[Tensor, "batch maps nodes"]
    """The maps."""
    active: Bool[Tensor, "batch maps nodes"] | None
    """After a pooling layer, the active nodes N_i of each map."""
    omega: Bool[Tensor, "batch 1 nodes"] | None
    """The nodes of interest, or None as long as these are all nodes."""
    laplacian: Laplacian
    """The graph of the maps, which a coarsening changes."""


def build_graph_layer(layer: Layer, in_maps: int, orientations: int, span: float, ties: Ties) -> nn.Module:
    """Build the module of a layer that works on the maps of a graph.

    Args:
        layer: The layer in the notation.
        in_maps: Number of input maps.
        orientations: Number of orientations of the features, for LC, GC, GB and MO.
        span: End of the part of the spectrum that the initial filters of SC cover.
        ties: How DP treats equal values.

    Returns:
        The module.

    Raises:
        TypeError: If the layer is none of the maps, such as S.

    Example:
        >>> build_graph_layer(SC(8, 2), in_maps=3, orientations=1, span=2.0, ties="keep")
        SpectralConv(3, 8, degree=2)
    """
    match layer:
        case SC(maps, degree):
            return SpectralConv(in_maps, maps, degree, span)
        case MC(maps, degree):
            return MixedConv(in_maps, maps, degree)
        case OP(pairs, smoothings):
            return OrientedProduct(in_maps, pairs, smoothings)
        case MP(pairs, smoothings):
            return MirrorProduct(in_maps, pairs, smoothings)
        case GP(pairs, smoothings):
            return GradientProduct(in_maps, pairs, smoothings)
        case R(pairs, smoothings, degree):
            return ResidualProduct(in_maps, pairs, smoothings, degree)
        case LC(features, size):
            return LiftingConv(in_maps, features, orientations, size)
        case GC(features, size):
            return GroupConv(in_maps, features, orientations, size)
        case GB(size):
            return GroupBlock(in_maps, orientations, size)
        case MO(maps):
            return OrientationMax(in_maps, maps, orientations)
        case D():
            return Coarsen()
        case DP(num_active):
            return DynamicPool(num_active, ties)
    raise TypeError(f"expected a graph layer, got {layer!r}")
