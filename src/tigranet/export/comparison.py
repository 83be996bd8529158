"""Compare an exported network with the network that it was made from."""

from importlib.util import find_spec
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from tigranet.export.model_interface import ModelInterface

COMPARED_IMAGES = 8
"""Number of images that are compared at each size."""
DEFAULT_SIZE = 32
"""Side length of the compared images for a network without an image size."""


def has_onnxruntime() -> bool:
    """Return whether onnxruntime, which runs ONNX files, is installed."""
    return find_spec("onnxruntime") is not None


def largest_difference(onnx_file: bytes | Path, interface: ModelInterface) -> float:
    """Measure how much the probabilities of an ONNX file differ from those of the network in PyTorch.

    Both classify the same images with a few bright shapes, at the size of the training images and at a larger size
    that is not square.

    Args:
        onnx_file: The ONNX file, or its content.
        interface: The exported version of the network.

    Returns:
        The largest difference of a probability.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # Errors only.
    source = onnx_file if isinstance(onnx_file, bytes) else str(onnx_file)
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    side = max(interface.network.image_size or DEFAULT_SIZE, interface.min_side)
    largest = 0.0
    for height, width in ((side, side), (side + 3, side + 6)):
        images = example_images(COMPARED_IMAGES, height, width, interface)
        (actual,) = session.run(None, {interface.input_name: images.numpy()})
        with torch.inference_mode():
            expected = interface.reference(images)
        result = torch.from_numpy(actual)
        if interface.metadata["output"] == "logits":
            expected, result = expected.softmax(1), result.softmax(1)
        largest = max(largest, (expected - result).abs().max().item())
    return largest


def example_images(
    count: int, height: int, width: int, interface: ModelInterface
) -> Float[Tensor, "count channels height width"] | UInt8[Tensor, "count height width channels"]:
    """Draw smooth bright spots on a dark background, always the same.

    Args:
        count: Number of images.
        height: Number of rows.
        width: Number of columns.
        interface: The exported version of a network, which gives type and layout of the images.

    Returns:
        The images.
    """
    generator = torch.Generator().manual_seed(0)
    channels = next(length for length in interface.shape if isinstance(length, int))
    y, x = torch.linspace(-1, 1, height)[:, None], torch.linspace(-1, 1, width)
    images = torch.zeros(count, channels, height, width)
    for _ in range(4):
        centre = 1.2 * torch.rand(count, 2, 1, 1, 1, generator=generator) - 0.6
        sharpness = 10 + 60 * torch.rand(count, 2, 1, 1, 1, generator=generator)
        squares = sharpness[:, 0] * (y - centre[:, 0]).square() + sharpness[:, 1] * (x - centre[:, 1]).square()
        images = torch.maximum(images, (-squares).exp())
    if interface.dtype == torch.uint8:
        return (images * 255).round().byte().permute(0, 2, 3, 1).contiguous()
    return images
