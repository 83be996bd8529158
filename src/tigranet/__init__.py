"""tigranet: image classification that does not care how the image is turned or shifted."""

from typing import Any

from tigranet.architecture import Architecture
from tigranet.graphs import GridLaplacian, Laplacian, SparseLaplacian
from tigranet.layers import DynamicPool, GradientProduct, MixedConv, OrientedProduct, SpectralConv, Statistics
from tigranet.model import TIGraNet

__version__ = "0.1.0"

__all__ = [
    "Architecture",
    "DynamicPool",
    "GradientProduct",
    "GridLaplacian",
    "InvariantFeatures",
    "Laplacian",
    "MixedConv",
    "OrientedProduct",
    "SparseLaplacian",
    "SpectralConv",
    "Statistics",
    "TIGraNet",
    "TIGraNetClassifier",
]


def __getattr__(name: str) -> Any:
    if name in ("InvariantFeatures", "TIGraNetClassifier"):  # scikit-learn and Lightning are loaded when asked for
        from tigranet import estimator

        return getattr(estimator, name)
    raise AttributeError(f"module 'tigranet' has no attribute '{name}'")
