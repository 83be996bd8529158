"""The network's layers, one per file. No layer owns a graph: the Laplacian is an argument of each call."""

from tigranet.layers.dynamic_pool import DynamicPool
from tigranet.layers.filter_bank import filter_bank
from tigranet.layers.gradient_product import GradientProduct
from tigranet.layers.mirror_product import MirrorProduct
from tigranet.layers.mixed_conv import MixedConv
from tigranet.layers.oriented_product import OrientedProduct
from tigranet.layers.spectral_conv import SpectralConv
from tigranet.layers.standardise import Standardise
from tigranet.layers.statistics import Statistics

__all__ = [
    "DynamicPool",
    "GradientProduct",
    "MirrorProduct",
    "MixedConv",
    "OrientedProduct",
    "SpectralConv",
    "Standardise",
    "Statistics",
    "filter_bank",
]
