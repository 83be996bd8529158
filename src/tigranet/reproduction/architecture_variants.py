"""Architectures that differ from another one in one part, for ablations."""

from collections.abc import Callable
from typing import TypeVar

from tigranet.architecture import GB, GC, LC, Architecture, D
from tigranet.notation import Layer

L = TypeVar("L", bound=Layer)


def replace_layers(kind: type[L], replacement: Callable[[L], tuple[Layer, ...]], architecture: str = "oriented") -> str:
    """Replace every layer of one kind in an architecture.

    Args:
        kind: The kind of layer.
        replacement: Returns the layers that take the place of a layer; none to remove it.
        architecture: A preset, or layers.

    Returns:
        The layers of the new architecture.

    Example:
        >>> from tigranet.architecture import OP
        >>> replace_layers(OP, lambda op: (), "MC[8,2]-OP[4]-MC[8,2]-OP[4]-S[2]")
        'MC[8,2]-MC[8,2]-S[2]'
    """
    layers = Architecture.parse(architecture).layers
    replaced = [replacement(layer) if isinstance(layer, kind) else (layer,) for layer in layers]
    return str(Architecture(tuple(layer for group in replaced for layer in group)))


def without_coarsening(architecture: str) -> str:
    """Remove the coarsenings from an architecture of group convolutions, at equal cost.

    Half the height and width with twice the features cost as much as before. So without coarsening, all group
    convolutions have as many features as the lifting convolution.

    Args:
        architecture: A preset, or layers.

    Returns:
        The layers of the new architecture.

    Example:
        >>> without_coarsening("LC[8,5]-GB[3]-D-GC[16,3]-GB[5]-MO[64]-S[0]")
        'LC[8,5]-GB[3]-GC[8,3]-GB[5]-MO[64]-S[0]'
    """
    features = next(layer.features for layer in Architecture.parse(architecture).layers if isinstance(layer, LC))
    return replace_layers(GC, lambda gc: (GC(features, gc.size),), replace_layers(D, lambda d: (), architecture))


def without_residuals(architecture: str) -> str:
    """Replace each residual block of group convolutions by two group convolutions.

    Args:
        architecture: A preset, or layers.

    Returns:
        The layers of the new architecture.

    Example:
        >>> without_residuals("LC[8,5]-GB[3]-D-GC[16,3]-GB[5]-MO[64]-S[0]")
        'LC[8,5]-GC[8,3]-GC[8,3]-D-GC[16,3]-GC[16,5]-GC[16,5]-MO[64]-S[0]'
    """
    layers: list[Layer] = []
    features = 0
    for layer in Architecture.parse(architecture).layers:
        if isinstance(layer, LC | GC):
            features = layer.features
        layers += [GC(features, layer.size)] * 2 if isinstance(layer, GB) else [layer]
    return str(Architecture(tuple(layers)))
