"""ResNet: a convolutional network with residual blocks (He et al., 2016), the usual baseline for photographs."""

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.baselines.baseline import Baseline
from tigranet.baselines.memory_format import channels_last_on_gpu
from tigranet.notation import FC, Layer, Notation

MAX_SIDE_OF_SMALL_IMAGES = 48
"""Images up to this height and width are not reduced before the first residual block."""


@dataclass(frozen=True)
class RB(Layer):
    """One stage: residual blocks of two 3x3 convolutions each, ``RB[maps,blocks]``."""

    maps: int
    """Number of maps of every block."""
    blocks: int
    """Number of blocks."""


@dataclass(frozen=True)
class ResidualArchitecture(Notation):
    """A residual network in the style of the paper's notation.

    It has any number of RB stages and any number of FC layers. Every stage after the first halves height and width.
    The layers before the first stage depend on the size of the images, see :class:`ResNet`.

    Args:
        layers: The layers in order.

    Example:
        >>> str(ResidualArchitecture.parse("resnet18"))
        'RB[64,2]-RB[128,2]-RB[256,2]-RB[512,2]'
    """

    FIRST = (RB,)
    FOLLOW: ClassVar = {RB: (RB, FC), FC: (FC,)}
    NEEDED = RB
    ORDER = "a ResNet has RB stages, then FC layers"
    PRESETS: ClassVar = {"resnet18": "RB[64,2]-RB[128,2]-RB[256,2]-RB[512,2]"}


class ResidualBlock(nn.Module):
    r"""Two 3x3 convolutions with batch normalisation, added to their input.

    .. math:: z = \mathrm{ReLU}(s(y) + N_2(W_2 \star \mathrm{ReLU}(N_1(W_1 \star y))))

    The shortcut s is the identity if input and output have the same shape. Otherwise it is a 1x1 convolution with the
    same stride as :math:`W_1`, followed by batch normalisation.

    Args:
        in_maps: Number of input maps.
        out_maps: Number of output maps.
        stride: Stride of the first convolution.

    Shape:
        - Input: (batch, in_maps, height, width).
        - Output: (batch, out_maps, ceil(height / stride), ceil(width / stride)).
    """

    def __init__(self, in_maps: int, out_maps: int, stride: int = 1) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            convolution(in_maps, out_maps, 3, stride),
            nn.BatchNorm2d(out_maps),
            nn.ReLU(),
            convolution(out_maps, out_maps, 3),
            nn.BatchNorm2d(out_maps),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_maps != out_maps:
            self.shortcut = nn.Sequential(convolution(in_maps, out_maps, 1, stride), nn.BatchNorm2d(out_maps))

    def forward(self, y: Float[Tensor, "batch in_maps height width"]) -> Float[Tensor, "batch out_maps rows columns"]:
        """Apply the block.

        Args:
            y: The maps.

        Returns:
            The output maps.
        """
        y = channels_last_on_gpu(y)  # after a grey image, whose only channel is first and last, they are not yet
        return F.relu(self.shortcut(y) + self.branch(y))


def convolution(in_maps: int, out_maps: int, side: int, stride: int = 1) -> nn.Conv2d:
    """Return a convolution without a bias, with zero padding and the initial weights of He et al. (2015).

    Args:
        in_maps: Number of input maps.
        out_maps: Number of output maps.
        side: Side length of the filters, odd.
        stride: Stride.

    Returns:
        The convolution. Batch normalisation, which follows it, has the bias.
    """
    layer = nn.Conv2d(in_maps, out_maps, side, stride, padding=side // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


class ResNet(Baseline):
    """Residual blocks with ReLU, the mean over all pixels, and a linear layer.

    The first layer depends on the size of the images, as is usual:

    - up to 48x48, a 3x3 convolution, which keeps the size;
    - above, a 7x7 convolution with stride 2 and max pooling over 3x3 pixels with stride 2, which reduce height and
      width to a quarter.

    Nothing in it is invariant to rotations, and its convolutions with stride 2 do not commute with quarter turns.

    Args:
        architecture: The notation of :class:`ResidualArchitecture`, a preset (``resnet18``), or a parsed value.
        num_classes: Number of classes. The last layer, which computes the logits, is implicit in the notation.
        image_size: Height and width of the images, or one number for square images.
        in_maps: Number of channels of the images.

    Raises:
        ValueError: If the architecture is invalid, or a number is less than 1.

    Example:
        >>> import torch
        >>> ResNet("RB[8,1]-RB[16,1]", num_classes=3, image_size=32, in_maps=3)(torch.rand(2, 3, 32, 32)).shape
        torch.Size([2, 3])
    """

    NOTATION = ResidualArchitecture
    CHANNELS_LAST = True

    def __init__(
        self,
        architecture: str | ResidualArchitecture,
        num_classes: int,
        image_size: int | tuple[int, int],
        in_maps: int = 1,
    ) -> None:
        super().__init__(architecture, num_classes, image_size, in_maps)
        stages = [layer for layer in self.architecture.layers if isinstance(layer, RB)]
        maps = stages[0].maps
        is_small = max(self.input_shape[1:]) <= MAX_SIDE_OF_SMALL_IMAGES
        modules: list[nn.Module] = [
            convolution(in_maps, maps, 3) if is_small else convolution(in_maps, maps, 7, stride=2),
            nn.BatchNorm2d(maps),
            nn.ReLU(),
        ]
        if not is_small:
            modules.append(nn.MaxPool2d(3, stride=2, padding=1))
        for number, stage in enumerate(stages):
            for block in range(stage.blocks):
                modules.append(ResidualBlock(maps, stage.maps, stride=2 if number and not block else 1))
                maps = stage.maps
        self.filters = nn.Sequential(*modules, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = self._fully_connected_layers(maps)
