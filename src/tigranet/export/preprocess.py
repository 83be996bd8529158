"""A network from the pixels of an image file to probabilities."""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from tigranet.data.luminance import LUMINANCE_WEIGHTS
from tigranet.export.portable_network import PortableNetwork
from tigranet.model import TIGraNet

WHITE = 255.0
"""The value of white in pixels of 8 bits."""
RGB_CHANNELS = 3
"""Number of channels of a colour image."""


class PreprocessedNetwork(nn.Module):
    r"""A network that reads pixels as image libraries give them, and returns probabilities.

    The pixels are scaled to [0, 1]. For a network that reads grey images, the three channels become their luminance
    :math:`Y = 0.299 \, R + 0.587 \, G + 0.114 \, B`; a grey image is given as three equal channels. The logits become
    probabilities by a softmax.

    Args:
        network: The network.

    Attributes:
        channels: Number of channels of the pixels: 3 for a network that reads grey or colour images.

    Shape:
        (batch, height, width, channels) -> (batch, classes).

    Example:
        >>> network = PreprocessedNetwork(TIGraNet("SC[2,2]-S[2]", num_classes=3).eval())
        >>> probabilities = network(torch.zeros(1, 8, 9, 3, dtype=torch.uint8))
        >>> probabilities.shape, round(probabilities.sum().item(), 6)
        (torch.Size([1, 3]), 1.0)
    """

    def __init__(self, network: TIGraNet) -> None:
        super().__init__()
        self.network = PortableNetwork(network)
        self.to_grey = network.in_maps == 1
        self.channels = RGB_CHANNELS if self.to_grey else network.in_maps

    def forward(self, pixels: UInt8[Tensor, "batch height width channels"]) -> Float[Tensor, "batch classes"]:
        """Compute the probabilities of the classes.

        Args:
            pixels: Pixels from 0 to 255.

        Returns:
            One probability per class.
        """
        return torch.softmax(self.network(self.to_images(pixels)), dim=1)

    def to_images(
        self, pixels: UInt8[Tensor, "batch height width channels"]
    ) -> Float[Tensor, "batch in_maps height width"]:
        """Scale pixels to [0, 1], and convert them to grey if the network reads grey images.

        Args:
            pixels: Pixels from 0 to 255.

        Returns:
            The images that the network reads.
        """
        images = (pixels.float() / WHITE).permute(0, 3, 1, 2)
        if not self.to_grey:
            return images
        red, green, blue = images[:, :1], images[:, 1:2], images[:, 2:]
        return red * LUMINANCE_WEIGHTS[0] + green * LUMINANCE_WEIGHTS[1] + blue * LUMINANCE_WEIGHTS[2]
