"""Check the structure of a TIFF file before a decoder reads it.

Decoders trust the number of pages and the number of values of each tag. A small file can therefore make them build
millions of objects, or read gigabytes from a sparse file.
"""

import struct

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.regular_file import BinaryFile

MAX_PAGES = 4096
"""Largest number of pages. They are the channels of one image, so there are few."""
MAX_TAGS = 4096
"""Largest number of tags of a page."""
MAX_TAG_BYTES = 16 * 2**20
"""Largest sum of the sizes of all tags with numbers, in all pages. Tags with texts and bytes may be larger."""
OBJECT_BYTES_PER_TAG_BYTE = 12
"""Memory of the Python objects that decoders make of numbers, per byte in the file."""
BYTE_TYPES = (1, 2, 6, 7)
"""Types of tags that decoders leave as bytes or text."""
OBJECT_BYTES_PER_PAGE = 20_000
"""Memory of the Python objects that decoders make of a page."""
TYPE_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
"""Bytes per value of each type of tag."""
SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""First bytes of TIFF and BigTIFF files, with little and big byte order."""


def is_tiff(file: BinaryFile) -> bool:
    """Whether a file starts like a TIFF file. The suffix is not reliable.

    Args:
        file: An open file.

    Returns:
        True for TIFF and BigTIFF.
    """
    file.seek(0)
    return file.read(4) in SIGNATURES


def check_tiff_header(file: BinaryFile) -> int:
    """Check the number of pages and the sizes of the tags of a TIFF file.

    Args:
        file: An open TIFF file.

    Returns:
        An upper limit of the memory that the header takes in a decoder, in bytes.

    Raises:
        UnreadableImageError: If there are more than ``MAX_PAGES`` pages, ``MAX_TAGS`` tags in a page or
            ``MAX_TAG_BYTES`` bytes of numbers in tags, or if the pages form a loop.
    """
    file.seek(0)
    start = file.read(16)
    order = "<" if start[:2] == b"II" else ">"
    is_big = b"+" in start[:4]
    count_format, tag_size, offset_format = ("Q", 20, "Q") if is_big else ("H", 12, "I")
    tag_format = f"{order}HH{offset_format}"
    offset_size = struct.calcsize(offset_format)
    offsets: set[int] = set()
    tag_bytes = text_bytes = 0
    try:
        (offset,) = struct.unpack_from(order + offset_format, start, 8 if is_big else 4)
        while offset:
            if offset in offsets:
                raise UnreadableImageError("its list of pages is a loop")
            offsets.add(offset)
            if len(offsets) > MAX_PAGES:
                raise UnreadableImageError(f"has more than {MAX_PAGES:,} pages")
            file.seek(offset)
            (num_tags,) = struct.unpack(order + count_format, file.read(struct.calcsize(count_format)))
            if num_tags > MAX_TAGS:
                raise UnreadableImageError(f"has a page with {num_tags:,} tags, more than {MAX_TAGS:,}")
            tags = file.read(num_tags * tag_size)
            for position in range(0, len(tags) - tag_size + 1, tag_size):
                _, kind, count = struct.unpack_from(tag_format, tags, position)
                if kind in BYTE_TYPES:
                    text_bytes += count
                else:
                    tag_bytes += count * TYPE_SIZES.get(kind, 1)
            if tag_bytes > MAX_TAG_BYTES:
                raise UnreadableImageError(f"has tags of {tag_bytes:,} bytes of numbers, more than {MAX_TAG_BYTES:,}")
            (offset,) = struct.unpack(order + offset_format, file.read(offset_size))
    except (struct.error, OSError, OverflowError):
        pass  # a damaged or truncated header; the decoder reports it
    return 2 * text_bytes + OBJECT_BYTES_PER_TAG_BYTE * tag_bytes + OBJECT_BYTES_PER_PAGE * len(offsets)
