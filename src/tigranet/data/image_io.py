"""Decode one image file of any supported format to an array in [0, 1], with limits on time and memory."""

import ctypes
import io
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

import numpy as np
from jaxtyping import Float
from PIL import Image, UnidentifiedImageError

from tigranet.data import pillow_pixels
from tigranet.data.decode_budget import DECODE_BUDGET
from tigranet.data.decoder_warnings import without_decoder_warnings
from tigranet.data.image_errors import UnreadableImageError, one_line
from tigranet.data.open_file_limit import TooManyOpenFilesError
from tigranet.data.pixel_rows import PixelRows, strip_bytes, unit_strips
from tigranet.data.regular_file import BinaryFile, open_regular_file
from tigranet.data.tiff_header import check_tiff_header, is_tiff
from tigranet.data.tiff_pixels import TiffPixels

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
MIN_TRIMMED_BYTES = 2**26
"""After decoding an image that takes more, freed memory is returned to the system."""
MAX_HELD_HEADER_BYTES = 2**20
"""A larger header is read again for decoding, rather than held while the thread waits for memory."""


def read_image(path: Path, color: bool = False) -> Float[np.ndarray, "height width channels"]:
    """Read an image file.

    Supported are PNG, JPEG, BMP, GIF (first frame) and WebP, rotated as their EXIF orientation says, and TIFF with
    integers or floating-point numbers, with or without a palette. The pages of a TIFF file are its channels.
    Transparent pixels become black. Integers are divided by :func:`~tigranet.data.value_range.full_scale`.
    Floating-point numbers are used as they are if they lie in [0, 1], otherwise they are scaled from their range to
    [0, 1].

    All threads together take at most :data:`~tigranet.data.decode_budget.MAX_DECODE_BYTES` of memory to decode images.

    Args:
        path: Path of the file. The format is detected from the content, not from the suffix.
        color: Return all channels instead of the luminance.

    Returns:
        The pixels as 32-bit floating-point numbers.

    Raises:
        UnreadableImageError: If the path is not a regular file, or the file cannot be opened or decoded, is too
            large, or holds NaN, infinity or complex numbers.
    """

    def result_bytes(height: int, width: int, channels: int) -> int:
        return 2 * height * width * 4 * (channels if color else 1)

    with open_pixels(path, result_bytes) as pixels:
        return np.concatenate(list(unit_strips(pixels, color)))


def read_image_size(path: Path) -> tuple[int, int]:
    """Read the size of an image from the header of its file.

    Args:
        path: Path of the file.

    Returns:
        Width and height in pixels, before a rotation by the EXIF orientation.

    Raises:
        UnreadableImageError: If the header cannot be read.
    """
    with _one_line_reasons(), open_regular_file(path) as file:
        num_bytes = check_tiff_header(file) if is_tiff(file) else pillow_pixels.header_bytes(file)
        with _reserve(num_bytes):
            return pillow_pixels.open_with_pillow(file).size


@contextmanager
def open_pixels(path: Path | io.BytesIO, working_bytes: Callable[[int, int, int], int]) -> Iterator[PixelRows]:
    """Decode an image file, and hold its share of the memory budget for the duration of a ``with`` statement.

    Args:
        path: Path of the file, or the content of a file in memory.
        working_bytes: Returns the memory that the ``with`` statement itself takes for an image, in bytes, from its
            height, width and number of channels.

    Yields:
        The pixels. They must be converted within the ``with`` statement.

    Raises:
        UnreadableImageError: If the file cannot be read as an image, or decoding it takes too much memory.
    """
    with _one_line_reasons(), _opened(path) as file, ExitStack() as reservation:
        if is_tiff(file):
            yield _decode_tiff(file, working_bytes, reservation)
        else:
            num_bytes = pillow_pixels.header_bytes(file)
            yield _decode(lambda: _PillowSource(file), num_bytes, working_bytes, reservation)


def _opened(path: Path | io.BytesIO) -> AbstractContextManager[BinaryFile]:
    if not isinstance(path, io.BytesIO):
        return open_regular_file(path)
    if not path.getbuffer().nbytes:
        raise UnreadableImageError("the file is empty")
    return nullcontext(path)


def _decode_tiff(file: BinaryFile, working_bytes: Callable[[int, int, int], int], reservation: ExitStack) -> PixelRows:
    num_bytes = check_tiff_header(file)
    with _reserve(num_bytes):
        tiff = TiffPixels(file)
        is_decodable, num_pages, segment_bytes = tiff.is_decodable, tiff.num_pages, tiff.segment_bytes
        held = [tiff] if is_decodable and num_bytes <= MAX_HELD_HEADER_BYTES else []
        del tiff
    if is_decodable:
        try:
            return _decode(lambda: held.pop() if held else TiffPixels(file), num_bytes, working_bytes, reservation)
        except UnreadableImageError:
            raise
        except ValueError:  # tifffile has no decoder for some types of pixels
            reservation.close()
    num_bytes += 2 * segment_bytes
    return _decode(lambda: _PillowSource(file, num_pages), num_bytes, working_bytes, reservation)


class _PillowSource:
    """A file that Pillow decodes, with the attributes of :class:`~tigranet.data.tiff_pixels.TiffPixels`."""

    def __init__(self, file: BinaryFile, num_pages: int = 1) -> None:
        self._image, self._num_pages = pillow_pixels.open_with_pillow(file), num_pages
        pillow_pixels.check_size(self._image, num_pages)
        self.width, self.height = self._image.size
        self.channels = num_pages * pillow_pixels.num_channels(self._image)
        self.decode_bytes = pillow_pixels.decode_bytes(self._image, num_pages)
        self.held_bytes = pillow_pixels.held_bytes(self._image, num_pages)

    def decode(self) -> PixelRows:
        return pillow_pixels.decode(self._image, self._num_pages)


def _decode(
    open_source: Callable[[], TiffPixels | _PillowSource],
    header_bytes: int,
    working_bytes: Callable[[int, int, int], int],
    reservation: ExitStack,
) -> PixelRows:
    """Decode with the memory that the header asks for. A file that changes meanwhile does not get more."""

    def total_bytes(source: TiffPixels | _PillowSource) -> int:
        conversion_bytes = max(
            strip_bytes(width, source.channels) + working_bytes(height, width, source.channels)
            for height, width in ((source.height, source.width), (source.width, source.height))  # a rotation swaps them
        )
        return header_bytes + max(source.decode_bytes, source.held_bytes + conversion_bytes)

    with _reserve(header_bytes):
        opened = open_source()
        num_bytes = total_bytes(opened)
        source = opened if header_bytes <= MAX_HELD_HEADER_BYTES else None
        del opened
    reservation.enter_context(_reserve(num_bytes))
    if source is None:
        source = open_source()
        if total_bytes(source) > num_bytes:
            raise UnreadableImageError("changed while it was read")
    pixels = source.decode()
    reservation.callback(pixels.close)  # runs before the memory is given to another thread
    return pixels


@contextmanager
def _reserve(num_bytes: int) -> Iterator[None]:
    """Wait for a share of the memory budget. No thread may ask for a second one while it holds one."""
    if num_bytes > DECODE_BUDGET.limit:
        raise UnreadableImageError(
            f"takes {num_bytes / 1e6:,.0f} MB of memory to decode, more than {DECODE_BUDGET.limit / 1e6:,.0f} MB"
        )
    with DECODE_BUDGET.reserve(num_bytes):
        try:
            yield
        finally:
            if num_bytes > MIN_TRIMMED_BYTES:
                _return_free_memory()


def _return_free_memory() -> None:
    """Return freed memory to the system. The GNU C library otherwise keeps blocks of some megabytes per thread."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


@contextmanager
def _one_line_reasons() -> Iterator[None]:
    """Convert the exceptions of all decoders to one kind with one line of text."""
    try:
        with without_decoder_warnings():
            yield
    except TooManyOpenFilesError:
        raise
    except UnreadableImageError as error:
        raise UnreadableImageError(one_line(str(error))) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise UnreadableImageError(f"has more than {pillow_pixels.MAX_PIXELS:,} pixels") from None
    except UnidentifiedImageError:
        raise UnreadableImageError(f"not an image of a supported format ({', '.join(pillow_pixels.FORMATS)})") from None
    except MemoryError:
        raise UnreadableImageError("takes more memory to decode than there is") from None
    except Exception as error:  # every decoder has exceptions of its own
        reason = one_line(str(error)) or type(error).__name__
        raise UnreadableImageError(one_line(f"cannot be decoded: {reason}")) from None
