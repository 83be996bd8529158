"""What the rivals share: an architecture in the paper's notation, one size of image, logits."""

from itertools import pairwise
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from tigranet.notation import FC, Notation


class Baseline(nn.Module):
    """``filters`` see the images, ``classifier`` turns what they saw into logits; a kind of network builds both.

    Unlike TIGraNet, whose weights do not depend on the number of pixels, a rival is built for one size of image.
    """

    NOTATION: ClassVar[type[Notation]]
    filters: nn.Sequential
    classifier: nn.Sequential

    def __init__(
        self, architecture: str | Notation, num_classes: int, image_size: int | tuple[int, int], in_maps: int
    ) -> None:
        super().__init__()
        height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
        if min(num_classes, in_maps, height, width) < 1:
            raise ValueError(
                "num_classes, in_maps, height and width are at least 1, "
                f"got {num_classes}, {in_maps}, {height} and {width}"
            )
        self.architecture = self.NOTATION.parse(architecture) if isinstance(architecture, str) else architecture
        self.num_classes, self.in_maps = num_classes, in_maps
        self.reads = (in_maps, height, width)

    def forward(self, images: Float[Tensor, "batch in_maps height width"]) -> Float[Tensor, "batch classes"]:
        """Logits."""
        if tuple(images.shape[1:]) != self.reads:
            wanted = ", ".join(map(str, self.reads))
            raise ValueError(f"this network reads (batch, {wanted}), got shape {tuple(images.shape)}")
        return self.classifier(self.filters(images))

    def connected(self, features: int) -> nn.Sequential:
        """The fully-connected layers of the architecture from so many features to the classes, ReLU between them."""
        units = [layer.units for layer in self.architecture.layers if isinstance(layer, FC)]
        widths = [features, *units, self.num_classes]
        parts = [part for ins, outs in pairwise(widths) for part in (nn.Linear(ins, outs), nn.ReLU())]
        return nn.Sequential(*parts[:-1])

    def check_size(self, number: int, height: int, width: int, least: int) -> None:
        """Whether maps of ``height`` x ``width`` are large enough for layer ``number``."""
        if min(height, width) < least:
            raise ValueError(
                f"maps of {height}x{width} are left for layer {number} ('{self.architecture.layers[number - 1]}') of "
                f"'{self.architecture}', which needs {least}x{least}: images of {self.reads[1]}x{self.reads[2]} are "
                "too small for it, or pooled too often before it"
            )

    def extra_repr(self) -> str:
        return f"'{self.architecture}', num_classes={self.num_classes}, reads={self.reads}"
