"""Decode image files with Pillow: which formats it may read, how much memory that takes, and pixels from its modes."""

import struct

import numpy as np
from PIL import ExifTags, Image

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.pixel_rows import PixelRows
from tigranet.data.regular_file import BinaryFile

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")
"""Formats that Pillow may open. Others run external programs (EPS) or are rarely tested."""
MAX_PIXELS = 64_000_000
"""A larger image is refused before it is decompressed."""
MAX_PNG_CHUNKS = 200_000
"""Largest number of chunks of a PNG file. Each is read in Python."""
MAX_JPEG_SCANS = 200
"""Largest number of scans of a JPEG file of ``MAX_PIXELS`` pixels. Each goes through the whole image."""
MAX_PNG_TEXT_BYTES = 2**20
"""Size at which Pillow refuses a compressed text of a PNG file."""
BYTES_PER_PIXEL = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}
"""Memory that Pillow takes for a pixel. In all other modes it is 4 bytes."""
DECODER_BYTES_PER_PIXEL = {"WEBP": 16, "GIF": 4, "PNG": 0, "BMP": 3, "TIFF": 4}
"""Memory of the decoders besides the image: canvases of animations and copies."""
ROTATIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""Operation that turns an image upright, by its EXIF orientation."""


def header_bytes(file: BinaryFile) -> int:
    """Estimate the memory that Pillow takes to open a file that is not TIFF, before it is opened.

    Args:
        file: An open file.

    Returns:
        An upper limit in bytes: the size of the file, and of the compressed texts of a PNG file.

    Raises:
        UnreadableImageError: If a PNG file has more than ``MAX_PNG_CHUNKS`` chunks.
    """
    size = file.seek(0, 2)
    file.seek(0)
    return size + (_png_text_bytes(file) if file.read(8) == b"\x89PNG\r\n\x1a\n" else 0)


def _png_text_bytes(file: BinaryFile) -> int:
    """Estimate the memory of the decompressed texts of a PNG file from the sizes of its chunks."""
    text_bytes = num_chunks = 0
    while len(header := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", header)
        if kind in (b"zTXt", b"iTXt", b"iCCP"):  # 1032 is the largest ratio of this compression
            text_bytes += 4 * max(length, min(1032 * length, MAX_PNG_TEXT_BYTES))
        num_chunks += 1
        if num_chunks > MAX_PNG_CHUNKS:
            raise UnreadableImageError(f"has more than {MAX_PNG_CHUNKS:,} chunks")
        if kind == b"IEND":
            break
        file.seek(length + 4, 1)
    return text_bytes


def open_with_pillow(file: BinaryFile) -> Image.Image:
    """Read the header of an image file with Pillow.

    Args:
        file: An open file.

    Returns:
        The image. Its pixels are not decoded yet.

    Raises:
        UnidentifiedImageError: If the file has none of ``FORMATS``.
    """
    file.seek(0)
    return Image.open(file, formats=FORMATS)


def check_size(image: Image.Image, num_pages: int = 1) -> None:
    """Refuse images that are too large or take too long to decode.

    Args:
        image: An image that is open but not decoded.
        num_pages: Number of pages that will be read.

    Raises:
        UnreadableImageError: If the image has too many pixels or scans.
    """
    num_pixels = image.width * image.height * num_pages
    if num_pixels > MAX_PIXELS:
        raise UnreadableImageError(f"has more than {MAX_PIXELS:,} pixels")
    if image.format in ("JPEG", "MPO") and num_pixels * 100 > MAX_PIXELS:
        max_scans = MAX_JPEG_SCANS * MAX_PIXELS // num_pixels
        if (num_scans := _num_scans(image)) > max_scans:
            raise UnreadableImageError(f"has {num_scans:,} scans of {num_pixels:,} pixels, more than {max_scans:,}")


def _num_scans(image: Image.Image) -> int:
    """Count the markers of scans in a JPEG file. They do not occur within compressed data."""
    file: BinaryFile = image.fp  # type: ignore[attr-defined]
    position = file.tell()
    file.seek(0)
    num_scans, end = 0, b""
    while block := file.read(2**20):
        num_scans += (end + block).count(b"\xff\xda")
        end = block[-1:]
    file.seek(position)
    return num_scans


def held_bytes(image: Image.Image, num_pages: int = 1) -> int:
    """Return the size of the decoded image.

    Args:
        image: An open image.
        num_pages: Number of pages that will be read.

    Returns:
        The size in bytes. Pages are held as arrays, besides the last page in Pillow.
    """
    per_pixel = BYTES_PER_PIXEL.get(image.mode, 4)
    return image.width * image.height * (per_pixel + (4 * num_pages if num_pages > 1 else 0))


def decode_bytes(image: Image.Image, num_pages: int = 1) -> int:
    """Estimate the memory that decoding takes, with the decoded image.

    Args:
        image: An image that is open but not decoded.
        num_pages: Number of pages that will be read.

    Returns:
        An upper limit in bytes.
    """
    if image.format in ("JPEG", "MPO"):
        per_pixel = 2 * len(image.getbands())  # the coefficients, which files with several scans need
    elif image.format == "PNG" and getattr(image, "is_animated", False):
        per_pixel = 4  # the canvas besides the frame
    else:
        per_pixel = DECODER_BYTES_PER_PIXEL.get(image.format or "", 16)
    # Old versions of Pillow fill up to 255 rows at once in a compressed BMP file.
    rows = 256 * image.width if image.format == "BMP" and _codec(image) == "bmp_rle" else 0
    pages = image.width * image.height * 4 if num_pages > 1 else 0
    return held_bytes(image, num_pages) + image.width * image.height * per_pixel + rows + pages


def _codec(image: Image.Image) -> str:
    tiles = getattr(image, "tile", [])
    return str(tiles[0][0]) if tiles else ""


def num_channels(image: Image.Image) -> int:
    """Return the number of channels that :func:`decode` makes of an image.

    Args:
        image: An image.

    Returns:
        1 for grey, and 3 for colour.
    """
    return 1 if _is_grey(image.mode) else 3


def _is_grey(mode: str) -> bool:
    return mode in ("1", "L", "F") or mode.startswith("I")


def decode(image: Image.Image, num_pages: int = 1) -> PixelRows:
    """Decode an image, upright as its EXIF orientation says, on a black background.

    Args:
        image: An open image.
        num_pages: Number of pages to read. Their channels are concatenated.

    Returns:
        The image.

    Raises:
        UnreadableImageError: If pages differ in size.
    """
    if num_pages == 1:
        image.seek(0)
        return _pixel_rows(image)
    pages = []
    for number in range(num_pages):
        image.seek(number)
        page = _pixel_rows(image)
        pages.append(np.concatenate(list(page.strips())))
        if pages[-1].shape[:2] != pages[0].shape[:2]:
            raise UnreadableImageError(f"has pages of different sizes, {pages[0].shape[:2]} and {pages[-1].shape[:2]}")
    height, width = pages[0].shape[:2]
    channels = sum(page.shape[2] for page in pages)
    return PixelRows(
        height,
        width,
        channels,
        lambda start, stop: np.concatenate([page[start:stop] for page in pages], axis=2),
        close=pages.clear,
    )


def _pixel_rows(image: Image.Image) -> PixelRows:
    """Decode one page, and convert its rows when they are read."""
    image.load()
    orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
    rotation = ROTATIONS.get(orientation) if isinstance(orientation, int) else None
    width, height = image.size
    if rotation is not None and orientation >= 5:
        width, height = height, width

    images, channels = [image], num_channels(image)
    size = image.size

    def read(start: int, stop: int) -> np.ndarray:
        image = images[0]
        box = _source_box(size, 1 if rotation is None else orientation, start, stop)
        part = image if stop - start == height else image.crop(box)
        if rotation is not None:
            part = part.transpose(rotation)
        return _grey_or_rgb(part)

    return PixelRows(height, width, channels, read, close=images.clear)


def _source_box(size: tuple[int, int], orientation: int, start: int, stop: int) -> tuple[int, int, int, int]:
    """Return the part of an image from which the rows ``start`` to ``stop`` of the upright image come."""
    width, height = size
    if orientation in (1, 2):
        return 0, start, width, stop
    if orientation in (3, 4):
        return 0, height - stop, width, height - start
    if orientation in (5, 6):
        return start, 0, stop, height
    return width - stop, 0, width - start, height


def _grey_or_rgb(image: Image.Image) -> np.ndarray:
    """Convert any mode of Pillow to an array with one or three channels, on a black background."""
    if image.mode == "1":
        image = image.convert("L")
    if image.mode == "P" and "transparency" not in image.info:
        image = image.convert("RGB")
    if not _is_grey(image.mode) and (image.mode != "RGB" or "transparency" in image.info):
        image = image.convert("RGBA")  # also from palettes and CMYK
        image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), image).convert("RGB")
    pixels = np.asarray(image)
    return pixels if pixels.ndim == 3 else pixels[..., None]
