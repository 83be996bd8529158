"""Images from standard input: a list of paths, or the content of one image file."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

from tigranet.data.letterbox import ImageItem, UnreadableFile
from tigranet.data.packed_image import MAX_CONTENT_BYTES, PackedImage
from tigranet.data.path_list import read_start, split_list

STANDARD_INPUT = Path("-")
"""The path that stands for standard input."""
NAME = Path("stdin")
"""What standard input, and an image from it, is called in results. A spreadsheet would take a dash for a formula."""
ARCHIVE = b"PK\x03\x04"
"""First bytes of zip archives and .npz files."""


def standard_input() -> io.BufferedIOBase:
    """Return standard input as bytes.

    Returns:
        The stream.

    Raises:
        ValueError: If it is closed.
    """
    stream: io.BufferedIOBase | None = getattr(sys.stdin, "buffer", None)
    if stream is None or stream.closed:
        raise ValueError("standard input is closed, so no images can be read from it: give files or folders")
    return stream


def images_of_stream(stream: io.BufferedIOBase) -> Iterator[ImageItem]:
    """Read a list of paths, or one image, from a stream.

    The first bytes tell them apart: those of an image file contain bytes that no list of paths starts with.

    Args:
        stream: The stream.

    Yields:
        The paths, relative to the working directory, see :func:`~tigranet.data.path_list.split_list`; or the image.
    """
    start = read_start(stream)
    if is_image(start):
        content = start + stream.read(max(0, MAX_CONTENT_BYTES + 1 - len(start)))
        yield PackedImage(NAME, len(content), lambda: content)
    elif start.startswith(ARCHIVE):
        yield UnreadableFile(NAME, "is an archive: save it as a file .zip or .npz, and give its path")
    else:
        yield from split_list(stream, NAME, start, Path())


def is_image(start: bytes) -> bool:
    r"""Tell from the first bytes of a stream whether it is an image file rather than a list of paths.

    Signatures that consist of letters are compared together with fields of the header that contain NUL.

    Args:
        start: The first bytes.

    Returns:
        Whether they are those of a PNG, JPEG, GIF, BMP, WebP or TIFF file.

    Example:
        >>> is_image(b"\x89PNG\r\n\x1a\n"), is_image(b"BMW/front.png\nBMW/back.png\n")
        (True, False)
    """
    if start.startswith((b"\x89PNG", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        return True
    if start.startswith((b"GIF87a", b"GIF89a")):
        return b"\0" in start[6:13] and b"." not in start[6:13]
    if start.startswith(b"BM"):
        return start[6:10] == bytes(4)
    return start.startswith(b"RIFF") and start[8:12] == b"WEBP"
