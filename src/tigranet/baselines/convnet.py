"""ConvNet: the plain convolutional network of the paper's Table 1."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn

from tigranet.baselines.baseline import Baseline
from tigranet.notation import FC, Layer, Notation

Border = Literal["none", "zeros"]
PADDING: dict[Border, int] = {"none": 0, "zeros": 1}
"""Pixels around the image that a 3x3 filter reads."""


@dataclass(frozen=True)
class C(Layer):
    """Convolution: that many 3x3 filters."""

    filters: int


@dataclass(frozen=True)
class P(Layer):
    """Max-pooling over squares of that side."""

    side: int


@dataclass(frozen=True)
class GAP(Layer):
    """Average pooling to a square of that side, however large the maps are: GAP[1] is the global average."""

    side: int


@dataclass(frozen=True)
class ConvArchitecture(Notation):
    """A plain convolutional network in the paper's notation: C and P in any number, C first; a GAP or none; FC in any
    number.

    >>> str(ConvArchitecture.parse("paper"))
    'C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]'
    """

    FIRST = (C,)
    FOLLOW: ClassVar = {C: (C, P, GAP, FC), P: (C, P, GAP, FC), GAP: (FC,), FC: (FC,)}
    NEEDED = C
    ORDER = "a ConvNet is C and P layers, C first, then a GAP or none, then FC layers"
    PRESETS: ClassVar = {
        "paper-small": "C[3]-P[2]-C[6]-P[2]-FC[50]-FC[30]-FC[10]",
        "paper": "C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]",
        "gap-small": "C[8]-P[2]-C[16]-P[2]-C[32]-GAP[1]-FC[50]",
        "gap": "C[40]-P[2]-C[80]-P[2]-C[160]-GAP[1]-FC[500]-FC[300]-FC[100]",
    }


class ConvNet(Baseline):
    """3x3 filters with ReLU, max-pooling, fully-connected layers with ReLU between them, as LeCun's.

    The paper does not say what its filters see beyond the border (reading 19). It does say that the networks it
    compares have roughly the same number of parameters, and most of them belong to the first fully-connected layer
    and so follow from the size of the last maps. Filters that stay inside the image, as LeCun's do, give 433,729 on
    MNIST-rot (TIGraNet: 441,970) and 9,621 on MNIST-012 (8,563); with zeros around it they would be 543,729 and
    16,821. So by default there is nothing beyond the border.

    With a ``GAP[1]`` layer, which the paper leaves out, the answer depends on what is in the image and hardly on
    where; the presets ``gap-small`` and ``gap`` have about as many parameters as TIGraNet's two networks.

    Args:
        architecture: the paper's notation, a preset (``paper-small``, ``paper``, ``gap-small``, ``gap``), or a parsed
            value.
        num_classes: the number of classes; the last layer, to them, is implicit.
        image_size: the height and width of the images, or the one number that both are.
        in_maps: channels of the images.
        border: ``none``, and each filter makes the maps two pixels smaller, or ``zeros``, and only pooling does.

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
        seeing: list[nn.Module] = []
        maps, height, width = self.reads
        for number, layer in enumerate(self.architecture.layers, start=1):
            if isinstance(layer, C):
                self.check_size(number, height, width, 3 - 2 * padding)
                seeing += [nn.Conv2d(maps, layer.filters, 3, padding=padding), nn.ReLU()]
                maps, height, width = layer.filters, height - 2 + 2 * padding, width - 2 + 2 * padding
            elif not isinstance(layer, FC):
                module, height, width = self.reducing(layer, number, maps, height, width)
                seeing.append(module)
        self.filters = nn.Sequential(*seeing, nn.Flatten())
        self.classifier = self.connected(maps * height * width)

    def reducing(self, layer: Layer, number: int, maps: int, height: int, width: int) -> tuple[nn.Module, int, int]:
        """What makes maps smaller in layer ``number``, and the height and width that it leaves."""
        match layer:
            case P(side):
                self.check_size(number, height, width, side)
                return nn.MaxPool2d(side), height // side, width // side
            case GAP(side):
                return nn.AdaptiveAvgPool2d(side), side, side
        raise TypeError(f"a ConvNet has no layer '{layer}'")


def comparable_convnet(
    parameters: int, units: tuple[int, ...], num_classes: int, image_size: int | tuple[int, int], in_maps: int = 1
) -> ConvNet:
    """The ConvNet with fully-connected layers of ``units`` whose number of parameters is nearest to ``parameters``.

    C[n]-P[2]-C[2n]-P[2]-C[2n]-P[2]-..., with as many poolings as bring the image to at most 3 pixels. Where the
    paper stops, after two, nearly all parameters of a small network belong to the first fully-connected layer and one
    or two filters are left: a poor rival. This one learns more than one that is pooled less, on 64x64 images of steel.
    Its filters see zeros beyond the border, so that the smallest images will do.

    >>> comparable_convnet(8_700, (50, 30, 10), 3, 28).architecture.layers[0]
    C(filters=6)
    """
    smaller_side = image_size if isinstance(image_size, int) else min(image_size)
    stages = 1
    while smaller_side >> stages > 3:
        stages += 1
    pooled = smaller_side > 1

    def with_filters(n: int) -> ConvNet:
        seeing = [part for stage in range(stages) for part in (C(n if stage == 0 else 2 * n), *([P(2)] * pooled))]
        architecture = ConvArchitecture((*seeing, *map(FC, units)))
        with torch.random.fork_rng(), torch.device("meta"):
            return ConvNet(architecture, num_classes, image_size, in_maps, border="zeros")

    def count(net: nn.Module) -> int:
        return sum(parameter.numel() for parameter in net.parameters())

    n = 1
    while count(with_filters(n + 1)) <= parameters:
        n += 1
    nearest = min(with_filters(n), with_filters(n + 1), key=lambda net: abs(count(net) - parameters))
    return ConvNet(str(nearest.architecture), num_classes, image_size, in_maps, border="zeros")
