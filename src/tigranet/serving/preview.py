"""The content of an image file as a PNG file that every browser can show, for formats such as TIFF."""

import io

import numpy as np
from PIL import Image

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.image_io import open_pixels
from tigranet.data.pixel_rows import unit_strips

PREVIEW_SIDE = 1024
"""Larger images are reduced to this number of pixels per side."""


def preview_png(content: bytes, max_pixels: int) -> bytes:
    """Convert an image file to 8-bit PNG.

    Values are scaled to [0, 1] as for a network, and rounded to 8 bits. Three channels stay as they are; any other
    number of channels becomes their luminance or mean.

    Args:
        content: The content of an image file of a supported format.
        max_pixels: Largest number of pixels, which is checked before the image is decoded.

    Returns:
        The content of a PNG file.

    Raises:
        UnreadableImageError: If the image cannot be decoded or is too large.
    """

    def working_bytes(height: int, width: int, channels: int) -> int:
        if height * width > max_pixels:
            raise UnreadableImageError(f"has {height} x {width} pixels, expected at most {max_pixels:,} pixels")
        return 2 * height * width * 3

    with open_pixels(io.BytesIO(content), working_bytes) as pixels:
        color = pixels.channels == 3
        strips = [np.rint(255 * strip).astype(np.uint8) for strip in unit_strips(pixels, color)]
        image = Image.fromarray(np.concatenate(strips) if color else np.concatenate(strips)[..., 0])
    image.thumbnail((PREVIEW_SIDE, PREVIEW_SIDE), Image.Resampling.BILINEAR)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
