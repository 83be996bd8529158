"""ConvNet: the plain convolutional network of the paper's Table 1."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.notation import FC, Layer, Notation


@dataclass(frozen=True)
class C(Layer):
    """Convolution: that many 3x3 filters."""

    filters: int


@dataclass(frozen=True)
class P(Layer):
    """Max-pooling over squares of that side."""

    side: int


@dataclass(frozen=True)
class ConvArchitecture(Notation):
    """A plain convolutional network in the paper's notation: C and P in any number, C first; FC in any number.

    >>> str(ConvArchitecture.parse("paper"))
    'C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]'
    """

    FIRST = (C,)
    FOLLOW: ClassVar = {C: (C, P, FC), P: (C, P, FC), FC: (FC,)}
    NEEDED = C
    ORDER = "a ConvNet is C and P layers, C first, then FC layers"
    PRESETS: ClassVar = {
        "paper-small": "C[3]-P[2]-C[6]-P[2]-FC[50]-FC[30]-FC[10]",
        "paper": "C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]",
    }


class ConvNet(nn.Module):
    """3x3 filters with ReLU, max-pooling, fully-connected layers with ReLU between them, as LeCun's.

    The paper does not say what its filters see beyond the border: zeros here, so that only the pooling makes maps
    smaller. Unlike TIGraNet's, the weights of the first fully-connected layer belong to one size of image.

    Args:
        architecture: the paper's notation, a preset (``paper-small``, ``paper``), or a parsed value.
        num_classes: the number of classes; the last layer, to them, is implicit.
        image_size: the height and width of the images, or the one number that both are.
        in_maps: channels of the images.

    >>> ConvNet("paper-small", num_classes=3, image_size=28)(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        architecture: str | ConvArchitecture,
        num_classes: int,
        image_size: int | tuple[int, int],
        in_maps: int = 1,
    ) -> None:
        super().__init__()
        if isinstance(architecture, str):
            architecture = ConvArchitecture.parse(architecture)
        height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
        if min(num_classes, in_maps, height, width) < 1:
            raise ValueError(
                "num_classes, in_maps, height and width are at least 1, "
                f"got {num_classes}, {in_maps}, {height} and {width}"
            )
        self.architecture, self.num_classes, self.in_maps = architecture, num_classes, in_maps
        self.reads = (in_maps, height, width)
        seeing: list[nn.Module] = []
        units = []
        maps = in_maps
        for number, layer in enumerate(architecture.layers, start=1):
            match layer:
                case C(filters):
                    seeing += [nn.Conv2d(maps, filters, 3, padding=1), nn.ReLU()]
                    maps = filters
                case P(side):
                    if min(height, width) < side:
                        raise ValueError(
                            f"maps of {height}x{width} are left for layer {number} ('{layer}') of '{architecture}', "
                            f"smaller than what it pools: leave out a P for images of {self.reads[1]}x{self.reads[2]}"
                        )
                    seeing.append(nn.MaxPool2d(side))
                    height, width = height // side, width // side
                case FC(n):
                    units.append(n)
        self.filters = nn.Sequential(*seeing)
        widths = [maps * height * width, *units, num_classes]
        connected = [part for ins, outs in pairwise(widths) for part in (nn.Linear(ins, outs), nn.ReLU())]
        self.classifier = nn.Sequential(*connected[:-1])

    def forward(self, images: Float[Tensor, "batch in_maps height width"]) -> Float[Tensor, "batch classes"]:
        """Logits."""
        if tuple(images.shape[1:]) != self.reads:
            wanted = ", ".join(map(str, self.reads))
            raise ValueError(f"this network reads (batch, {wanted}), got shape {tuple(images.shape)}")
        return self.classifier(self.filters(images).flatten(1))

    def extra_repr(self) -> str:
        return f"'{self.architecture}', num_classes={self.num_classes}, reads={self.reads}"


def comparable_convnet(
    parameters: int, units: tuple[int, ...], num_classes: int, image_size: int | tuple[int, int], in_maps: int = 1
) -> ConvNet:
    """The ConvNet with fully-connected layers of ``units`` whose number of parameters is nearest to ``parameters``.

    C[n]-P[2]-C[2n]-P[2]-C[2n]-P[2]-..., with as many poolings as bring the image to at most 3 pixels. Where the
    paper stops, after two, nearly all parameters of a small network belong to the first fully-connected layer and one
    or two filters are left: a poor rival. This one learns more than one that is pooled less, on 64x64 images of steel.

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
            return ConvNet(architecture, num_classes, image_size, in_maps)

    def count(net: nn.Module) -> int:
        return sum(parameter.numel() for parameter in net.parameters())

    n = 1
    while count(with_filters(n + 1)) <= parameters:
        n += 1
    nearest = min(with_filters(n), with_filters(n + 1), key=lambda net: abs(count(net) - parameters))
    return ConvNet(nearest.architecture, num_classes, image_size, in_maps)
