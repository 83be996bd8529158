import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageFile, UnidentifiedImageError

from tigranet.data import pillow_pixels
from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.pillow_pixels import ROTATIONS, check_size, decode, decode_bytes, header_bytes, open_with_pillow


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_with(*chunks):
    content = saved(Image.new("L", (8, 8)), "PNG").getvalue()
    return io.BytesIO(content[:33] + b"".join(chunks) + content[33:])


@pytest.mark.parametrize("kind", ["EPS", "PPM", "TGA", "ICO", "PCX", "PDF"])
def test_other_formats_are_not_opened(kind):
    with pytest.raises(UnidentifiedImageError):
        open_with_pillow(saved(Image.new("L", (16, 16)), kind))


def test_truncated_files_are_not_completed():
    assert not ImageFile.LOAD_TRUNCATED_IMAGES


@pytest.mark.parametrize("orientation", ROTATIONS)
def test_rows_of_a_rotated_image_are_those_of_the_whole(orientation):
    pixels = np.random.default_rng(0).integers(0, 256, (6, 9), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    rows = decode(open_with_pillow(saved(Image.fromarray(pixels), "PNG", exif=exif)))
    expected = np.asarray(Image.fromarray(pixels).transpose(ROTATIONS[orientation]))
    assert (rows.height, rows.width) == expected.shape
    single = np.concatenate([rows.read(row, row + 1) for row in range(rows.height)])
    np.testing.assert_array_equal(single[..., 0], expected)
    np.testing.assert_array_equal(rows.read(0, rows.height)[..., 0], expected)


def test_the_memory_of_compressed_texts_is_known_before_they_are_read():
    text = zlib.compress(bytes(2**20 - 10))
    texts = [chunk(b"zTXt", b"key%d\0\0" % number + text) for number in range(20)]
    assert header_bytes(png_with()) < 1000
    assert header_bytes(png_with(*texts)) > 20 * 2**20


def test_too_many_chunks_are_refused(monkeypatch):
    monkeypatch.setattr(pillow_pixels, "MAX_PNG_CHUNKS", 100)
    with pytest.raises(UnreadableImageError, match="100 chunks"):
        header_bytes(png_with(*[chunk(b"teSt", b"")] * 100))


def test_a_jpeg_file_with_too_many_scans_is_refused(monkeypatch):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    file = saved(image, "JPEG", progressive=True)
    check_size(open_with_pillow(file))
    monkeypatch.setattr(pillow_pixels, "MAX_PIXELS", 64 * 64)
    monkeypatch.setattr(pillow_pixels, "MAX_JPEG_SCANS", 5)
    with pytest.raises(UnreadableImageError, match=r"10 scans.*more than 5"):
        check_size(open_with_pillow(file))


def test_the_estimates_cover_what_pillow_holds():
    for mode, kind in (("L", "PNG"), ("RGB", "PNG"), ("I;16", "PNG"), ("CMYK", "JPEG"), ("RGBA", "WEBP"), ("P", "GIF")):
        image = open_with_pillow(saved(Image.new(mode, (50, 40)), kind))
        estimate = decode_bytes(image)
        image.load()
        assert estimate >= 50 * 40 * (4 if len(image.getbands()) > 1 else np.asarray(image).itemsize)


def test_pages_of_different_sizes_are_refused():
    file = saved(Image.new("L", (8, 8)), "TIFF", save_all=True, append_images=[Image.new("L", (9, 8))])
    with pytest.raises(UnreadableImageError, match=r"\(8, 8\) and \(8, 9\)"):
        decode(open_with_pillow(file), 2)
