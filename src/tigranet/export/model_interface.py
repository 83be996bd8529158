"""What a client of an exported network has to know: names, shapes, types and the meaning of inputs and outputs."""

import json
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.export.portable_network import PortableNetwork
from tigranet.export.preprocess import RGB_CHANNELS, PreprocessedNetwork
from tigranet.model import TIGraNet

EXAMPLE_SIZE = 16
"""Least side length of the example images. Nothing of them but the number of channels is part of an exported file."""


@dataclass(frozen=True)
class ModelInterface:
    """The input and the output of an exported network."""

    module: PortableNetwork | PreprocessedNetwork
    """The function that is exported."""
    network: TIGraNet
    """The network that it was made from."""
    input_name: str
    output_name: str
    dtype: torch.dtype
    """Type of the input."""
    shape: tuple[str | int, ...]
    """Shape of the input. A length that is not fixed has a name."""
    metadata: dict[str, str]
    """Describes the network, so that a client needs nothing but the exported file."""

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.network.num_classes

    @property
    def min_side(self) -> int:
        """Least side length of images that keeps 2 pixels after all coarsenings."""
        return 2 ** (self.network.architecture.num_coarsenings + 1)

    def example(self) -> Tensor:
        """Return an input that the network accepts."""
        side = max(EXAMPLE_SIZE, self.min_side)
        sides = {"batch": 2, "height": side, "width": side + 1}
        lengths = [length if isinstance(length, int) else sides[length] for length in self.shape]
        return torch.zeros(lengths, dtype=self.dtype)

    def reference(self, images: Tensor) -> Float[Tensor, "batch classes"]:
        """Compute the output with the network itself.

        Args:
            images: Input of the exported network.

        Returns:
            Its output.
        """
        if isinstance(self.module, PreprocessedNetwork):
            return self.network(self.module.to_images(images)).softmax(1)
        return self.network(images)


def model_interface(network: TIGraNet, preprocess: bool = False) -> ModelInterface:
    """Describe the exported version of a network.

    Args:
        network: The network, in single precision.
        preprocess: Whether the exported network reads pixels of 8 bits and returns probabilities, instead of images
            with values in [0, 1] and logits.

    Returns:
        The description.
    """
    metadata = {
        "architecture": str(network.architecture),
        "class_names": json.dumps(list(network.class_names)),
        "image_size": "any" if network.image_size is None else str(network.image_size),
        "boundary": network.boundary,
        "window": network.window,
        "margin": str(network.margin),
    }
    if preprocess:
        module = PreprocessedNetwork(network)
        shape = ("batch", "height", "width", module.channels)
        metadata |= {"channels": str(module.channels), "value_range": "[0, 255]", "layout": "NHWC"}
        metadata |= {"channel_order": "RGB"} if module.channels == RGB_CHANNELS else {}
        metadata |= {"output": "probabilities"}
        return ModelInterface(module, network, "pixels", "probabilities", torch.uint8, shape, metadata)
    metadata |= {"channels": str(network.in_maps), "value_range": "[0, 1]", "layout": "NCHW", "output": "logits"}
    images = ("batch", network.in_maps, "height", "width")
    return ModelInterface(PortableNetwork(network), network, "images", "logits", torch.float32, images, metadata)
