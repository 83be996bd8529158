"""Decode TIFF files of numbers, with limits on what their headers and compressed data may claim."""

import logging
import lzma
import math
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.pixel_rows import PixelRows
from tigranet.data.regular_file import BinaryFile
from tigranet.data.tiff_header import MAX_PAGES

if TYPE_CHECKING:
    import tifffile

MAX_VALUES = 256_000_000
"""An image with more values is refused, however small they are, because it would take too long."""
READ_BUFFER_BYTES = 2**28
"""Compressed data that tifffile reads at a time."""
SEGMENT_SLACK_BYTES = 2**20
"""How much longer the decompressed data of a strip or tile may be than the strip or tile."""
SEGMENT_COPIES = 4
"""Number of copies of a strip or tile in memory while it is decoded: packed, unpacked, without predictor, in order."""
PACKBITS_COPIES = 12
"""The same for PackBits, which tifffile unpacks to a list."""
MAX_LZMA_BYTES = 2**26
"""Memory of the LZMA decompressor itself."""


class TiffPixels:
    """The first series of images of a TIFF file, before and after decoding.

    Args:
        file: An open TIFF file that :func:`~tigranet.data.tiff_header.check_tiff_header` accepts.

    Raises:
        UnreadableImageError: If the file has no image with rows and columns, or too many values.
    """

    def __init__(self, file: BinaryFile) -> None:
        import tifffile

        logging.getLogger("tifffile").addHandler(logging.NullHandler())  # the reason is reported, not logged
        file.seek(0)
        # The name is for messages. Other files that this one refers to are not opened.
        self._tiff = tifffile.TiffFile(file, name="file", _multifile=False)
        self._tiff.is_mmstack = self._tiff.is_ndtiff = False
        _check_ome(self._tiff)
        if not self._tiff.series or self._tiff.series[0].keyframe is None:
            raise UnreadableImageError("has no pages")
        self._series = self._tiff.series[0]
        axes, shape = self._series.axes, self._series.shape
        if "Y" not in axes or "X" not in axes:
            raise UnreadableImageError(f"has no rows and columns, only {' x '.join(map(str, shape)) or 'nothing'}")
        if math.prod(shape) > MAX_VALUES:
            raise UnreadableImageError(f"has {' x '.join(map(str, shape))} values, more than {MAX_VALUES:,}")
        self.num_pages = len(self._series.pages)
        """Number of pages, which are channels."""
        self.height, self.width = shape[axes.index("Y")], shape[axes.index("X")]
        """Size in pixels."""
        self.channels = math.prod(shape) // max(1, self.height * self.width)
        """Number of channels with alpha."""
        page, photometric = self._series.keyframe, tifffile.PHOTOMETRIC
        self._color_channels = {
            int(photometric.MINISBLACK): 1,
            int(photometric.MINISWHITE): 1,
            int(photometric.RGB): 3,
        }.get(int(page.photometric))
        compression = tifffile.COMPRESSION
        self._unpack = {
            int(compression.NONE): None,
            int(compression.ADOBE_DEFLATE): _inflated_sizes,
            int(compression.DEFLATE): _inflated_sizes,
            int(compression.LZMA): _lzma_sizes,
            int(compression.PACKBITS): _packbits_sizes,
        }.get(int(page.compression), _unknown_sizes)
        if page.dtype is not None and page.dtype.kind == "c":
            raise UnreadableImageError("holds complex numbers, expected real numbers")

    @property
    def is_decodable(self) -> bool:
        """Whether tifffile decodes the pixels. Pillow must convert palettes, CMYK and other compressions."""
        return (
            self._color_channels is not None
            and self._unpack is not _unknown_sizes
            and self._series.keyframe.dtype is not None
        )

    @property
    def segment_bytes(self) -> int:
        """Size of a decoded strip or tile, which may be larger than the image."""
        page = self._series.keyframe
        samples = page.samplesperpixel if page.planarconfig == 1 else 1
        if page.is_tiled:
            pixels = page.tilewidth * page.tilelength * max(1, page.tiledepth)
        else:
            pixels = page.imagewidth * min(page.imagelength, page.rowsperstrip or page.imagelength)
        return pixels * samples * max(1, math.ceil(_bits(page) / 8))

    @property
    def held_bytes(self) -> int:
        """Size of the decoded image in bytes."""
        return 0 if self._series.dtype is None else self._series.nbytes

    @property
    def decode_bytes(self) -> int:
        """Memory that decoding takes, with the decoded image, in bytes."""
        if self._unpack is None:
            return self.held_bytes + (2 * self.segment_bytes if self._series.keyframe.is_tiled else 0)
        copies = PACKBITS_COPIES if self._unpack is _packbits_sizes else SEGMENT_COPIES
        packed = sum(size for _, size in self._segments())
        return self.held_bytes + copies * self.segment_bytes + min(packed, READ_BUFFER_BYTES)

    def decode(self) -> PixelRows:
        """Decode the pixels.

        Returns:
            The image.

        Raises:
            UnreadableImageError: If the compressed data are longer than the strips and tiles that they are for.
            ValueError: If tifffile cannot decode the pixels.
        """
        import tifffile

        self._check_segments()
        page, axes = self._series.keyframe, self._series.axes
        pixels = self._series.asarray(maxworkers=1)
        is_inverted = page.photometric == tifffile.PHOTOMETRIC.MINISWHITE and pixels.dtype.kind in "bu"
        arrays = [np.moveaxis(pixels, (axes.index("Y"), axes.index("X")), (0, 1))]
        del pixels

        def read(start: int, stop: int) -> np.ndarray:
            rows = arrays[0][start:stop].reshape(stop - start, self.width, -1)
            if is_inverted:
                rows = ~rows if rows.dtype.kind == "b" else (2**page.bitspersample - 1) - rows
            return rows[..., :color_channels] if is_premultiplied else rows

        extra_samples, color_channels = tuple(page.extrasamples), self._color_channels
        has_extra = color_channels is not None and self.channels - 1 == color_channels
        # ASSOCALPHA: the colours are already multiplied by alpha
        is_premultiplied = has_extra and extra_samples == (tifffile.EXTRASAMPLE.ASSOCALPHA,)
        has_alpha = has_extra and extra_samples == (tifffile.EXTRASAMPLE.UNASSALPHA,)
        channels = self.channels - 1 if is_premultiplied or has_alpha else self.channels
        return PixelRows(self.height, self.width, channels, read, has_alpha, arrays.clear)

    def _segments(self) -> Iterator[tuple[int, int]]:
        """Yield the position and the size in the file of each strip and tile."""
        for page in self._series.pages:
            if page is not None:
                yield from zip(page.dataoffsets, page.databytecounts, strict=False)

    def _check_segments(self) -> None:
        """Check that no compressed strip or tile is longer than it should be, without keeping what is unpacked."""
        if self._unpack is None:
            return
        limit = self.segment_bytes + SEGMENT_SLACK_BYTES
        for offset, size in self._segments():
            if size * _MAX_RATIOS[self._unpack] <= limit:
                continue
            self._tiff.filehandle.seek(offset)
            unpacked_bytes = 0
            for num_bytes in self._unpack(self._tiff.filehandle.read(size)):
                unpacked_bytes += num_bytes
                if unpacked_bytes > limit:
                    raise UnreadableImageError("its compressed data are longer than the image")


def _bits(page: "tifffile.TiffPage") -> int:
    """Return the number of bits of a sample."""
    return max(page.bitspersample) if isinstance(page.bitspersample, tuple) else int(page.bitspersample)


def _inflated_sizes(data: bytes) -> Iterator[int]:
    """Yield the sizes of the pieces of decompressed data."""
    decompressor = zlib.decompressobj()
    try:
        while data and not decompressor.eof:
            yield len(decompressor.decompress(data, SEGMENT_SLACK_BYTES))
            data = decompressor.unconsumed_tail
    except zlib.error:
        return  # reported when the image is decoded


def _lzma_sizes(data: bytes) -> Iterator[int]:
    """Yield the sizes of the pieces of decompressed data."""
    decompressor = lzma.LZMADecompressor(memlimit=MAX_LZMA_BYTES)
    try:
        while not decompressor.eof and (data or not decompressor.needs_input):
            yield len(decompressor.decompress(data, SEGMENT_SLACK_BYTES))
            data = b""
    except EOFError:
        return
    except lzma.LZMAError as error:
        if "memory" in str(error).lower():
            raise UnreadableImageError(f"needs more than {MAX_LZMA_BYTES:,} bytes to be decompressed") from None


def _packbits_sizes(data: bytes) -> Iterator[int]:
    """Yield the length of each run of PackBits."""
    position = 0
    while position < len(data):
        code = data[position]
        if code == 128:
            position += 1
        elif code > 128:
            position += 2
            yield 257 - code
        else:
            position += code + 2
            yield code + 1


def _unknown_sizes(data: bytes) -> Iterator[int]:
    """Stand for a compression that tifffile does not decompress here."""
    raise ValueError("not decompressed by tifffile")


_MAX_RATIOS: dict[Callable[[bytes], Iterator[int]], float] = {
    _inflated_sizes: 1032,
    _lzma_sizes: math.inf,
    _packbits_sizes: 64,
    _unknown_sizes: math.inf,
}
"""How many times longer data can become by decompression."""


def _check_ome(tiff: "tifffile.TiffFile") -> None:
    """Refuse OME metadata with absurd numbers, for which tifffile makes lists of that length."""
    if not tiff.pages or not tiff.is_ome:
        return
    for element in ElementTree.fromstring(tiff.pages.first.description).iter():
        attributes = element.attrib
        if element.tag.endswith("Pixels"):
            largest: float = math.prod(abs(int(attributes.get(f"Size{axis}", 1))) or 1 for axis in "TCZ")
        elif element.tag.endswith("TiffData"):
            names = ("NumPlanes", "PlaneCount", "IFD", "FirstT", "FirstC", "FirstZ")
            largest = max(int(attributes.get(name, 0)) for name in names)
        elif element.tag[:-1].endswith("Along"):
            start, end, step = (float(attributes.get(name, 1)) for name in ("Start", "End", "Step"))
            largest = abs(end - start) / abs(step) if step else math.inf
        else:
            continue
        if not largest <= MAX_PAGES:  # also if it is NaN
            raise UnreadableImageError(f"its OME metadata claim {largest:,.0f} pages, more than {MAX_PAGES:,}")
