"""ConvNet: the plain convolutional network of the paper's Table 1."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn

from tigranet.baselines.baseline import Baseline, parameter_count
from tigranet.notation import FC, Layer, Notation

Border = Literal["none", "zeros"]
PADDING: dict[Border, int] = {"none": 0, "zeros": 1}
"""Number of zero pixels around the maps of a 3x3 convolution."""


@dataclass(frozen=True)
class C(Layer):
    """Convolution with 3x3 filters."""

    filters: int
    """Number of filters."""


@dataclass(frozen=True)
class P(Layer):
    """Max pooling over squares."""

    side: int
    """Side length of the squares."""


@dataclass(frozen=True)
class GAP(Layer):
    """Average pooling to a square of fixed size; GAP[1] is global average pooling."""

    side: int
    """Side length of the result."""


@dataclass(frozen=True)
class ConvArchitecture(Notation):
    """A plain convolutional network in the paper's notation.

    It has any number of C and P layers, beginning with C; at most one GAP layer; and any number of FC layers.

    Args:
        layers: The layers in order.

    Example:
        >>> str(ConvArchitecture.parse("paper"))
        'C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]'
    """

    FIRST = (C,)
    FOLLOW: ClassVar = {C: (C, P, GAP, FC), P: (C, P, GAP, FC), GAP: (FC,), FC: (FC,)}
    NEEDED = C
    ORDER = "a ConvNet has C and P layers, beginning with C, then at most one GAP layer, then FC layers"
    PRESETS: ClassVar = {
        "paper-small": "C[3]-P[2]-C[6]-P[2]-FC[50]-FC[30]-FC[10]",
        "paper": "C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]",
        "gap-small": "C[8]-P[2]-C[16]-P[2]-C[32]-GAP[1]-FC[50]",
        "gap": "C[40]-P[2]-C[80]-P[2]-C[160]-GAP[1]-FC[500]-FC[300]-FC[100]",
    }


class ConvNet(Baseline):
    """A convolutional network like LeNet: 3x3 filters with ReLU, max pooling, and fully connected layers with ReLU.

    The paper does not state how its filters treat the border (reading 19). It states that the networks it compares have
    roughly the same number of parameters, and most of them belong to the first fully connected layer, so they follow
    from the size of the last maps. Filters without padding, as in LeNet, give 433,729 parameters on MNIST-rot
    (TIGraNet: 441,970) and 9,621 on MNIST-012 (TIGraNet: 8,563). With zero padding there would be 543,729 and 16,821.
    The default is therefore no padding.

    The paper has no ``GAP[1]`` layer. With it, the logits depend on the content of the image and hardly on its
    position. The presets ``gap-small`` and ``gap`` have about as many parameters as the two networks of TIGraNet.

    Args:
        architecture: The paper's notation, a preset (``paper-small``, ``paper``, ``gap-small``, ``gap``), or a parsed
            value.
        num_classes: Number of classes. The last layer, which computes the logits, is implicit in the notation.
        image_size: Height and width of the images, or one number for square images.
        in_maps: Number of channels of the images.
        border: ``none`` for convolutions without padding, which reduce height and width by two pixels; ``zeros`` for
            zero padding, which keeps the size.

    Raises:
        ValueError: If the architecture is invalid or the images are too small for it.

    Example:
        >>> ConvNet("paper-small", num_classes=3, image_size=28)(torch.rand(2, 1, 28, 28)).shape
        torch.Size([2, 3])
    """

    NOTATION: ClassVar[type[Notation]] = ConvArchitecture

    def __init__(
        self,
        architecture: str | Notation,
        num_classes: int,
        image_size: int | tuple[int, int],
        in_maps: int = 1,
        border: Border = "none",
    ) -> None:
        super().__init__(architecture, num_classes, image_size, in_maps)
        padding = PADDING[border]
        modules: list[nn.Module] = []
        maps, height, width = self.input_shape
        for number, layer in enumerate(self.architecture.layers, start=1):
            if isinstance(layer, C):
                self._check_map_size(number, height, width, 3 - 2 * padding)
                modules += [nn.Conv2d(maps, layer.filters, 3, padding=padding), nn.ReLU()]
                maps, height, width = layer.filters, height - 2 + 2 * padding, width - 2 + 2 * padding
            elif not isinstance(layer, FC):
                module, height, width = self._downsampling(layer, number, maps, height, width)
                modules.append(module)
        self.filters = nn.Sequential(*modules, nn.Flatten())
        self.classifier = self._fully_connected_layers(maps * height * width)

    def _downsampling(
        self, layer: Layer, number: int, maps: int, height: int, width: int
    ) -> tuple[nn.Module, int, int]:
        """Return the module of layer ``number``, which reduces the size, and the new height and width."""
        match layer:
            case P(side):
                self._check_map_size(number, height, width, side)
                return nn.MaxPool2d(side), height // side, width // side
            case GAP(side):
                return nn.AdaptiveAvgPool2d(side), side, side
        raise TypeError(f"a ConvNet has no layer '{layer}'")


def comparable_convnet(
    parameters: int, units: tuple[int, ...], num_classes: int, image_size: int | tuple[int, int], in_maps: int = 1
) -> ConvNet:
    """Build the ConvNet with a number of parameters as close as possible to a given number.

    The architecture is C[n]-P[2]-C[2n]-P[2]-C[2n]-P[2]-...-FC, with enough pooling layers to reduce the smaller side of
    the image to at most 3 pixels. With two pooling layers, as in the paper, nearly all parameters of a small network
    would belong to the first fully connected layer and only one or two filters would be left, which is a weak baseline:
    on 64x64 images of steel it learns less. The filters use zero padding, so the network works on very small images.

    Args:
        parameters: Target number of parameters.
        units: Hidden units of the fully connected layers.
        num_classes: Number of classes.
        image_size: Height and width of the images, or one number for square images.
        in_maps: Number of channels of the images.

    Returns:
        A randomly initialised network.

    Example:
        >>> comparable_convnet(8_700, (50, 30, 10), 3, 28).architecture.layers[0]
        C(filters=6)
    """
    smaller_side = image_size if isinstance(image_size, int) else min(image_size)
    stages = 1
    while smaller_side >> stages > 3:
        stages += 1
    pooling = [P(2)] if smaller_side > 1 else []

    def with_filters(n: int) -> ConvNet:
        """Build the network with n filters in its first layer, without allocating its parameters."""
        stage_layers = [layer for stage in range(stages) for layer in (C(n if stage == 0 else 2 * n), *pooling)]
        architecture = ConvArchitecture((*stage_layers, *map(FC, units)))
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            return ConvNet(architecture, num_classes, image_size, in_maps, border="zeros")

    n = 1
    while parameter_count(with_filters(n + 1)) <= parameters:
        n += 1
    nearest = min(with_filters(n), with_filters(n + 1), key=lambda net: abs(parameter_count(net) - parameters))
    return ConvNet(str(nearest.architecture), num_classes, image_size, in_maps, border="zeros")
