"""Images that a caller passes in memory, as arrays or as the content of image files, to the input of a network."""

import io

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.image_io import decoded
from tigranet.data.letterbox import letterbox_bytes, letterbox_pixels
from tigranet.data.luminance import fit_channels
from tigranet.data.pillow_pixels import MAX_PIXELS
from tigranet.data.pixel_rows import PixelRows

ImageInput = np.ndarray | bytes
"""One image: an array (height, width) or (height, width, channels), or the content of an image file."""
MAX_INTEGER_BYTES = 2
"""Size of the largest integers whose type tells the value of white."""


def prepare_image(
    image: ImageInput, size: int, in_maps: int, max_pixels: int = MAX_PIXELS
) -> Float[Tensor, "in_maps size size"]:
    """Bring an image to the size, the channels and the range of values that a network reads.

    The steps are those of ``tigranet predict``: decode, scale to [0, 1], convert to grey for networks of one channel,
    letterbox, and repeat a grey image in three channels for networks of colour images.

    Args:
        image: The content of an image file of a supported format, or an array of pixels: booleans, integers of 8 or
            16 bits, which are divided by the largest value of their type, or floating-point numbers, which are used as
            they are if they lie in [0, 1], and otherwise scaled from their range to [0, 1].
        size: Side length in pixels.
        in_maps: Number of channels that the network reads.
        max_pixels: Largest number of pixels of the image, which is checked before it is decoded.

    Returns:
        The image in [0, 1].

    Raises:
        UnreadableImageError: If the image cannot be decoded, is too large, has an unsupported type or shape, or holds
            NaN or infinity. The message does not say which image it is; the caller puts that in front.

    Example:
        >>> prepare_image(np.full((20, 10, 3), 255, np.uint8), size=4, in_maps=1).shape
        torch.Size([1, 4, 4])
    """

    def working_bytes(height: int, width: int, channels: int) -> int:
        _check_pixels(height, width, max_pixels)
        return letterbox_bytes(height, width, channels, size)

    color = in_maps > 1
    if isinstance(image, bytes):
        with decoded(io.BytesIO(image), working_bytes) as pixels:
            square = letterbox_pixels(pixels, size, color)
    else:
        square = letterbox_pixels(_rows_of_array(image, in_maps, max_pixels), size, color)
    image_tensor = fit_channels(torch.from_numpy(np.ascontiguousarray(square)).permute(2, 0, 1), in_maps)
    if image_tensor.shape[0] != in_maps:
        raise UnreadableImageError(f"has {image_tensor.shape[0]} channels, the model reads {in_maps}")
    return image_tensor.contiguous()


def _check_pixels(height: int, width: int, max_pixels: int) -> None:
    if height * width > max_pixels:
        raise UnreadableImageError(f"has {height} x {width} pixels, expected at most {max_pixels:,} pixels")


def _rows_of_array(image: np.ndarray, in_maps: int, max_pixels: int) -> PixelRows:
    if image.dtype.kind not in "biuf" or (image.dtype.kind in "iu" and image.dtype.itemsize > MAX_INTEGER_BYTES):
        raise UnreadableImageError(
            f"holds {image.dtype}, expected uint8, uint16 or floating-point numbers: convert 8-bit values with "
            ".astype('uint8')"
        )
    channels = image.shape[2] if image.ndim == 3 else 1
    if image.ndim not in (2, 3) or channels not in (1, 3, in_maps):
        raise UnreadableImageError(
            f"has shape {image.shape}, expected (height, width) or (height, width, channels) with "
            f"{' or '.join(map(str, sorted({1, 3, in_maps})))} channels"
        )
    height, width = image.shape[:2]
    _check_pixels(height, width, max_pixels)
    pixels = image.reshape(height, width, channels)
    return PixelRows(height, width, channels, lambda start, stop: pixels[start:stop])
