import io
import struct

import numpy as np
import pytest
import tifffile

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.tiff_header import MAX_PAGES, check_tiff_header, is_tiff


def directory(tags, following, order="<"):
    """Return one page: a list of (code, type, count, value) and the position of the next page."""
    body = b"".join(struct.pack(order + "HHII", *tag) for tag in tags)
    return struct.pack(order + "H", len(tags)) + body + struct.pack(order + "I", following)


def tiff(*pages, order="<"):
    start = b"II*\0" if order == "<" else b"MM\0*"
    return io.BytesIO(start + struct.pack(order + "I", 8) + b"".join(pages))


@pytest.mark.parametrize("options", [{}, {"bigtiff": True}, {"byteorder": ">"}, {"bigtiff": True, "byteorder": ">"}])
def test_ordinary_files_are_accepted_with_few_bytes(options):
    file = io.BytesIO()
    tifffile.imwrite(file, np.zeros((5, 8, 8), np.uint8), photometric="minisblack", compression="zlib", **options)
    assert is_tiff(file)
    assert 0 < check_tiff_header(file) < 200_000


@pytest.mark.parametrize("content", [b"", b"II", b"II*", b"\x89PNG", b"MM\0\0", b"II*\0"])
def test_damaged_headers_are_left_to_the_decoder(content):
    file = io.BytesIO(content)
    assert is_tiff(file) == (content == b"II*\0")
    if is_tiff(file):
        assert check_tiff_header(file) == 0


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_loop_of_pages_is_refused(order):
    with pytest.raises(UnreadableImageError, match="loop"):
        check_tiff_header(tiff(directory([], 14, order), directory([], 8, order), order=order))


def test_too_many_pages_are_refused():
    pages = [directory([], 8 + 6 * (number + 1)) for number in range(MAX_PAGES + 1)]
    with pytest.raises(UnreadableImageError, match=f"{MAX_PAGES:,} pages"):
        check_tiff_header(tiff(*pages))


def test_tags_with_absurd_numbers_of_values_are_refused():
    with pytest.raises(UnreadableImageError, match="400,000,000"):
        check_tiff_header(tiff(directory([(273, 4, 100_000_000, 8)], 0)))
    page = tiff(directory([(37724, 7, 100_000_000, 8)], 0))  # layers of Photoshop, which are bytes
    assert 100_000_000 < check_tiff_header(page) < 300_000_000


def test_too_many_tags_are_refused():
    with pytest.raises(UnreadableImageError, match="60,000 tags"):
        check_tiff_header(tiff(struct.pack("<H", 60_000)))
