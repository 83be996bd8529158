"""GMR-ResNet: a residual network with radial filters (Du et al., 2025), from the package GMR-Conv."""

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from torch import nn

from tigranet.baselines.baseline import Baseline
from tigranet.notation import Layer, Notation

PACKAGE, NETWORKS = "GMR-Conv", "GMR_Conv.gmr_resnet"
"""Name of the package for pip, and of its module with the networks."""
STAGES = 4
"""Number of stages of the network, each of two residual blocks."""


class MissingPackageError(ImportError):
    """Raised when a baseline needs a package that is not installed."""


@dataclass(frozen=True)
class GMR(Layer):
    """One stage: two residual blocks with radial filters, ``GMR[side]``."""

    side: int
    """Side length of the filters in pixels, odd."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.side % 2 == 0:
            raise ValueError(f"expected the side of GMR to be odd, got {self.side}")


@dataclass(frozen=True)
class GMRArchitecture(Notation):
    """A GMR-ResNet with 18 layers: the sizes of the filters of its four stages.

    Args:
        layers: The stages in order.

    Raises:
        ValueError: If there are not four stages.

    Example:
        >>> str(GMRArchitecture.parse("gmr-resnet18"))
        'GMR[9]-GMR[9]-GMR[5]-GMR[5]'
    """

    FIRST = (GMR,)
    FOLLOW: ClassVar = {GMR: (GMR,)}
    NEEDED = GMR
    ORDER = f"a GMR-ResNet has {STAGES} GMR stages"
    PRESETS: ClassVar = {"gmr-resnet18": "GMR[9]-GMR[9]-GMR[5]-GMR[5]"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.layers) != STAGES:
            raise ValueError(f"expected {STAGES} stages, got {len(self.layers)} in '{self}': {self.ORDER}")


class GMRResNet(Baseline):
    """The network ``gmr_resnet18`` of the package GMR-Conv, which is not a requirement of this one.

    Its filters depend on the distance from their centre only, so it is invariant to rotations and to reflections, as
    far as the pixels allow. The preset has the filters of the published results on CIFAR-10.

    Args:
        architecture: The notation of :class:`GMRArchitecture`, a preset (``gmr-resnet18``), or a parsed value.
        num_classes: Number of classes.
        image_size: Height and width of the images, or one number for square images.
        in_maps: Number of channels of the images.
        pooling: Whether 2x2 mean pooling halves height and width before the first stage, as in the published results.

    Raises:
        MissingPackageError: If the package GMR-Conv is not installed.
        ValueError: If the architecture is invalid, or a number is less than 1.
    """

    NOTATION = GMRArchitecture
    CHANNELS_LAST = True

    def __init__(
        self,
        architecture: str | GMRArchitecture,
        num_classes: int,
        image_size: int | tuple[int, int],
        in_maps: int = 1,
        pooling: bool = True,
    ) -> None:
        super().__init__(architecture, num_classes, image_size, in_maps)
        network = _networks().gmr_resnet18(
            num_classes=num_classes,
            in_channels=in_maps,
            gmr_conv_size=[layer.side for layer in self.architecture.layers if isinstance(layer, GMR)],
            skip_first_maxpool=not pooling,
        )
        _use_whole_filters(network)
        self.classifier = nn.Sequential(network.fc)
        network.fc = nn.Identity()
        self.filters = nn.Sequential(network)


def _use_whole_filters(network: Any) -> None:
    """Let each convolution of the package compute its filters in each step and use them in one convolution.

    By default, the package convolves every map by itself with one filter per ring, and then mixes the results. Both
    compute the same sums, but convolutions of single maps cannot use the tensor cores of a GPU.

    Args:
        network: A network of the package.
    """
    for layer in network.modules():
        if hasattr(layer, "dw_fwd"):
            layer.dw_fwd = False
            layer.inference_accelerate = False  # which would keep the filters of the last call of eval()


def _networks() -> Any:
    """Return the module of the package that has the networks."""
    try:
        return import_module(NETWORKS)
    except ImportError as error:
        # The package also imports torchvision and torchio, for transforms of images that are not needed here. If they
        # are missing, Python keeps the modules that the package has loaded before.
        if NETWORKS in sys.modules:
            return sys.modules[NETWORKS]
        raise MissingPackageError(
            f"GMRResNet needs the package {PACKAGE}, which is not installed: pip install --no-deps {PACKAGE} scipy"
        ) from error
