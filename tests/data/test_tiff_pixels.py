import io
import logging
import lzma
import struct
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image

from tigranet.data import tiff_pixels
from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.tiff_pixels import TiffPixels


def write(pixels, **options):
    file = io.BytesIO()
    tifffile.imwrite(file, pixels, **options)
    return file


def with_strip(pixels, data, code):
    """Return a TIFF file whose only strip holds other data than its header claims."""
    file = write(pixels, rowsperstrip=len(pixels), metadata=None, compression="zlib")
    file.seek(0)
    with tifffile.TiffFile(file) as tiff:
        places = {name: tiff.pages[0].tags[name].valueoffset for name in ("StripOffsets", "StripByteCounts")}
        assert tiff.pages[0].tags["StripByteCounts"].dtype == 4
        compression_place = tiff.pages[0].tags["Compression"].valueoffset
    content = bytearray(file.getvalue())
    struct.pack_into("<I", content, places["StripOffsets"], len(content))
    struct.pack_into("<I", content, places["StripByteCounts"], len(data))
    struct.pack_into("<H", content, compression_place, code)
    return io.BytesIO(bytes(content) + data)


SMALL = np.zeros((8, 8), np.uint8)
BOMBS = {
    "deflate": (8, lambda: zlib.compress(bytes(10**8), 9)),
    "lzma": (34925, lambda: lzma.compress(bytes(10**8), preset=0)),
    "packbits": (32773, lambda: b"\x81\x00" * 10**5),
}
"""Number of the compression, and a function that compresses."""


@pytest.mark.parametrize("name", BOMBS)
def test_a_strip_that_is_longer_than_the_image_is_refused(name):
    code, compress = BOMBS[name]
    file = with_strip(SMALL, compress(), code)
    with pytest.raises(UnreadableImageError, match="longer than the image"):
        TiffPixels(file).decode()


def test_a_strip_that_needs_a_large_decompressor_is_refused():
    data = lzma.compress(bytes(10), preset=None, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 2**27}])
    with pytest.raises(UnreadableImageError, match="decompressed"):
        TiffPixels(with_strip(SMALL, data, 34925)).decode()


@pytest.mark.parametrize("name", ["zlib", "lzma"])
def test_compressible_and_random_strips_of_the_right_length_are_decoded(name):
    for pixels in (np.zeros((2000, 2000), np.uint8), np.random.default_rng(0).integers(0, 256, (300, 900), np.uint8)):
        rows = TiffPixels(write(pixels, compression=name, rowsperstrip=len(pixels))).decode()
        assert np.array_equal(rows.read(0, rows.height)[..., 0], pixels)


def test_the_memory_includes_tiles_that_are_larger_than_the_image():
    tiled = TiffPixels(write(SMALL, tile=(4096, 4096), compression="zlib"))
    assert tiled.segment_bytes == 4096**2
    assert tiled.decode_bytes > 4096**2 > TiffPixels(write(SMALL)).decode_bytes


@pytest.mark.parametrize(
    ("description", "claim"),
    [
        (
            '<Pixels DimensionOrder="XYZCT" SizeX="8" SizeY="8" SizeZ="1" SizeC="1" SizeT="1000000000"/>',
            "1,000,000,000",
        ),
        ('<Pixels SizeT="1" SizeZ="1" SizeC="1"><TiffData NumPlanes="9999999"/></Pixels>', "9,999,999"),
    ],
)
def test_absurd_ome_metadata_are_refused(description, claim):
    file = write(SMALL, description=f"<OME><Image>{description}</Image></OME>", metadata=None)
    with pytest.raises(UnreadableImageError, match=claim):
        TiffPixels(file)


def test_a_file_that_refers_to_another_file_is_read_alone(tmp_path):
    tifffile.imwrite(tmp_path / "other.tif", np.full((8, 8), 99, np.uint8))
    pixels = '<Pixels DimensionOrder="XYZCT" Type="uint8" SizeX="8" SizeY="8" SizeZ="2" SizeC="1" SizeT="1">'
    data = "".join(
        f'<TiffData FirstZ="{z}" IFD="0"><UUID FileName="{name}">urn:uuid:{z}</UUID></TiffData>'
        for z, name in enumerate(("this.tif", "other.tif"))
    )
    description = f'<OME UUID="urn:uuid:0"><Image>{pixels}{data}</Pixels></Image></OME>'
    tifffile.imwrite(tmp_path / "this.tif", SMALL, description=description, metadata=None)
    with (tmp_path / "this.tif").open("rb") as file:
        assert TiffPixels(file).channels == 1


def test_palettes_and_other_compressions_are_left_to_pillow():
    file = io.BytesIO()
    Image.new("P", (8, 8)).save(file, "TIFF")
    assert not TiffPixels(file).is_decodable
    Image.new("L", (8, 8)).save(file := io.BytesIO(), "TIFF", compression="tiff_lzw")
    assert not TiffPixels(file).is_decodable
    assert TiffPixels(write(SMALL)).is_decodable


def test_complex_numbers_and_too_many_values_are_refused():
    with pytest.raises(UnreadableImageError, match="complex"):
        TiffPixels(write(np.zeros((8, 8), np.complex64)))
    with pytest.raises(UnreadableImageError, match=r"5000000 x 8 x 8.*256,000,000"):
        TiffPixels(write(SMALL, description='{"shape": [5000000, 8, 8]}', metadata=None))


def test_reading_many_files_adds_one_handler_to_the_log_of_tifffile():
    for _ in range(3):
        TiffPixels(write(SMALL))
    assert logging.getLogger("tifffile").handlers.count(tiff_pixels.SILENT) == 1
    assert len(logging.getLogger("tifffile").handlers) < 3
