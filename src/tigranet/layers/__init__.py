"""The network's layers, one per file. No layer owns a graph: the Laplacian is an argument of each call."""

from tigranet.layers.coarsen import Coarsen
from tigranet.layers.dynamic_pool import DynamicPool
from tigranet.layers.filter_bank import filter_bank
from tigranet.layers.gradient_product import GradientProduct
from tigranet.layers.group_block import GroupBlock
from tigranet.layers.mirror_product import MirrorProduct
from tigranet.layers.mixed_conv import MixedConv
from tigranet.layers.orientation_max import OrientationMax
from tigranet.layers.orientation_norm import OrientationNorm
from tigranet.layers.oriented_product import OrientedProduct
from tigranet.layers.residual_product import ResidualProduct
from tigranet.layers.spectral_conv import SpectralConv
from tigranet.layers.standardise import Standardise
from tigranet.layers.statistics import Statistics
from tigranet.layers.steerable_conv import GroupConv, LiftingConv

__all__ = [
    "Coarsen",
    "DynamicPool",
    "GradientProduct",
    "GroupBlock",
    "GroupConv",
    "LiftingConv",
    "MirrorProduct",
    "MixedConv",
    "OrientationMax",
    "OrientationNorm",
    "OrientedProduct",
    "ResidualProduct",
    "SpectralConv",
    "Standardise",
    "Statistics",
    "filter_bank",
]
