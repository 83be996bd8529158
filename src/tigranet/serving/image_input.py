"""Images that a caller passes in memory, as arrays or as the content of image files, to the input of a network."""

import io
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.image_io import open_pixels
from tigranet.data.letterbox import letterbox_bytes, letterbox_pixels
from tigranet.data.luminance import fit_channels
from tigranet.data.pillow_pixels import MAX_PIXELS
from tigranet.data.pixel_rows import PixelRows

ImageInput = np.ndarray | bytes
"""One image: an array (height, width) or (height, width, channels), or the content of an image file."""
MAX_INTEGER_BYTES = 2
"""Size of the largest integers whose type tells the value of white."""
MAX_CANONICAL_PIXELS = 2**20
"""Larger images are not rotated before they are resized: the copies would take too much memory."""
CANONICAL_BYTES_PER_VALUE = 16
"""Memory for the copies of an image in its four rotations, per value. An estimate from above."""


class RotatedImage(NamedTuple):
    """An image as a network reads it, of a file in its canonical rotation."""

    image: Float[Tensor, "in_maps size size"]
    """The image in [0, 1]."""
    quarter_turns: int
    """By how many quarter turns, counter-clockwise, the pixels were rotated before they were resized."""


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
    return _prepare(image, size, in_maps, max_pixels, canonical=False).image


def prepare_rotated_image(image: ImageInput, size: int, in_maps: int, max_pixels: int = MAX_PIXELS) -> RotatedImage:
    """Rotate a square image to its canonical rotation, and bring it to what a network reads.

    Resizing rounds, and rounds a rotated image differently. In its canonical rotation, an image and its quarter turns
    have the same pixels before they are resized, and therefore bit for bit the same answer. Images that are not square
    or have more than ``MAX_CANONICAL_PIXELS`` pixels stay as they are.

    Args:
        image: The image, as for :func:`prepare_image`.
        size: Side length in pixels.
        in_maps: Number of channels that the network reads.
        max_pixels: Largest number of pixels of the image, which is checked before it is decoded.

    Returns:
        The image, and by how much it was rotated.

    Raises:
        UnreadableImageError: As :func:`prepare_image`.

    Example:
        >>> image = np.array([[1, 0], [0, 0]], np.uint8)
        >>> prepare_rotated_image(image, size=4, in_maps=1).quarter_turns
        2
    """
    return _prepare(image, size, in_maps, max_pixels, canonical=True)


def _prepare(image: ImageInput, size: int, in_maps: int, max_pixels: int, canonical: bool) -> RotatedImage:
    def working_bytes(height: int, width: int, channels: int) -> int:
        _check_pixels(height, width, max_pixels)
        copies = CANONICAL_BYTES_PER_VALUE * height * width * channels if canonical and _is_small(height, width) else 0
        return letterbox_bytes(height, width, channels, size) + copies

    def prepare(pixels: PixelRows) -> RotatedImage:
        quarter_turns = 0
        if canonical and _is_small(pixels.height, pixels.width):
            pixels, quarter_turns = _canonical_pixels(pixels)
        square = letterbox_pixels(pixels, size, in_maps > 1)
        image_tensor = fit_channels(torch.from_numpy(np.ascontiguousarray(square)).permute(2, 0, 1), in_maps)
        if image_tensor.shape[0] != in_maps:
            raise UnreadableImageError(f"has {image_tensor.shape[0]} channels, the model reads {in_maps}")
        return RotatedImage(image_tensor.contiguous(), quarter_turns)

    if isinstance(image, bytes):
        with open_pixels(io.BytesIO(image), working_bytes) as pixels:
            return prepare(pixels)
    return prepare(_rows_of_array(image, in_maps, max_pixels))


def _is_small(height: int, width: int) -> bool:
    return 0 < height == width and height * width <= MAX_CANONICAL_PIXELS


def _canonical_pixels(pixels: PixelRows) -> tuple[PixelRows, int]:
    """Rotate a square image so that its bytes, row by row, are the smallest in lexicographic order."""
    array = np.concatenate(list(pixels.strips()))
    quarter_turns = min(range(4), key=lambda turns: np.rot90(array, turns).tobytes())
    rotated = np.ascontiguousarray(np.rot90(array, quarter_turns))
    return replace(pixels, read=lambda start, stop: rotated[start:stop], close=lambda: None), quarter_turns


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
