"""The base class of the baselines: an architecture in the paper's notation, one image size, logits."""

from itertools import pairwise
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from tigranet.baselines.memory_format import channels_last_on_gpu
from tigranet.notation import FC, Notation


class Baseline(nn.Module):
    """A network for images of one size: ``filters`` compute features and ``classifier`` computes logits.

    Subclasses build both. TIGraNet has weights that do not depend on the number of pixels, but a baseline is built for
    one image size.

    Args:
        architecture: The paper's notation, a preset, or a parsed value.
        num_classes: Number of classes.
        image_size: Height and width of the images, or one number for square images.
        in_maps: Number of channels of the images.

    Raises:
        ValueError: If a number is less than 1.
    """

    NOTATION: ClassVar[type[Notation]]
    CHANNELS_LAST: ClassVar[bool] = False
    """Whether the maps on a GPU are stored with the channels last, see :func:`channels_last_on_gpu`."""
    filters: nn.Sequential
    dropout: nn.Dropout
    """Between filters and classifier. A recipe may set its probability, which is 0 otherwise."""
    classifier: nn.Sequential
    input_shape: tuple[int, int, int]
    """Channels, height and width of the images."""

    def __init__(
        self, architecture: str | Notation, num_classes: int, image_size: int | tuple[int, int], in_maps: int
    ) -> None:
        super().__init__()
        height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
        if min(num_classes, in_maps, height, width) < 1:
            raise ValueError(
                "num_classes, in_maps, height and width must be at least 1, "
                f"got {num_classes}, {in_maps}, {height} and {width}"
            )
        self.architecture = self.NOTATION.parse(architecture) if isinstance(architecture, str) else architecture
        self.num_classes, self.in_maps = num_classes, in_maps
        self.input_shape = (in_maps, height, width)
        self.dropout = nn.Dropout(0.0)

    def forward(self, images: Float[Tensor, "batch in_maps height width"]) -> Float[Tensor, "batch classes"]:
        """Return logits.

        Args:
            images: Images of the size that was given to the constructor.

        Returns:
            The logits.

        Raises:
            ValueError: If the images have another shape.
        """
        if tuple(images.shape[1:]) != self.input_shape:
            expected = ", ".join(map(str, self.input_shape))
            raise ValueError(
                f"expected images of shape (batch, {expected}), got {tuple(images.shape)}: "
                "resize the images, or build the network with another image_size or in_maps"
            )
        if self.CHANNELS_LAST:
            images = channels_last_on_gpu(images)
        return self.classifier(self.dropout(self.filters(images)))

    def extra_repr(self) -> str:
        """Return the constructor arguments for ``repr``."""
        return f"'{self.architecture}', num_classes={self.num_classes}, input_shape={self.input_shape}"

    def _fully_connected_layers(self, features: int) -> nn.Sequential:
        """Build the FC layers of the architecture and the layer to the classes, with ReLU between them."""
        hidden_units = [layer.units for layer in self.architecture.layers if isinstance(layer, FC)]
        widths = [features, *hidden_units, self.num_classes]
        layers = [layer for ins, outs in pairwise(widths) for layer in (nn.Linear(ins, outs), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    def _check_map_size(self, number: int, height: int, width: int, min_side: int) -> None:
        """Raise ValueError if the maps are smaller than ``min_side`` before layer ``number``."""
        if min(height, width) < min_side:
            raise ValueError(
                f"layer {number} ('{self.architecture.layers[number - 1]}') of '{self.architecture}' needs maps of at "
                f"least {min_side}x{min_side}, got {height}x{width}: use images larger than "
                f"{self.input_shape[1]}x{self.input_shape[2]}, or fewer layers that reduce the size before it"
            )


def parameter_count(module: nn.Module) -> int:
    """Return the number of parameters of a module.

    Args:
        module: The module.

    Returns:
        The number of parameters.

    Example:
        >>> parameter_count(nn.Linear(3, 2))
        8
    """
    return sum(parameter.numel() for parameter in module.parameters())
