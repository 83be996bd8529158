"""tigranet: image classification that does not care how the image is turned or shifted."""

from tigranet.architecture import Architecture
from tigranet.graphs import GridLaplacian, Laplacian, SparseLaplacian
from tigranet.layers import DynamicPool, SpectralConv, Statistics
from tigranet.model import TIGraNet

__version__ = "0.1.0"

__all__ = [
    "Architecture",
    "DynamicPool",
    "GridLaplacian",
    "Laplacian",
    "SparseLaplacian",
    "SpectralConv",
    "Statistics",
    "TIGraNet",
]
