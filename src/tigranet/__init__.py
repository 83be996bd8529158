"""Image classification that is invariant to rotations and shifts of the image."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tigranet.idle_threads import let_idle_threads_sleep

if TYPE_CHECKING:
    from tigranet.architecture import Architecture
    from tigranet.estimator import TIGraNetClassifier
    from tigranet.graphs import GridLaplacian, Laplacian, SparseLaplacian
    from tigranet.invariant_features import InvariantFeatures
    from tigranet.layers import DynamicPool, GradientProduct, MixedConv, OrientedProduct, SpectralConv, Statistics
    from tigranet.model import TIGraNet

__version__ = "0.2.0"

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

_NAMES_BY_MODULE = {
    "architecture": ("Architecture",),
    "graphs": ("GridLaplacian", "Laplacian", "SparseLaplacian"),
    "layers": ("DynamicPool", "GradientProduct", "MixedConv", "OrientedProduct", "SpectralConv", "Statistics"),
    "model": ("TIGraNet",),
    "estimator": ("TIGraNetClassifier",),
    "invariant_features": ("InvariantFeatures",),
}

let_idle_threads_sleep()


def __getattr__(name: str) -> Any:
    """Import submodules lazily, so that `tigranet --help` starts fast."""
    for module, names in _NAMES_BY_MODULE.items():
        if name in names:
            return getattr(import_module(f"tigranet.{module}"), name)
    raise AttributeError(f"module 'tigranet' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
