"""Lists of paths in text files and on standard input: one path per line, or separated by NUL as by ``find -print0``."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.letterbox import UnreadableFile
from tigranet.data.regular_file import open_regular_file
from tigranet.quoted_text import shorten

LIST_SUFFIXES = (".txt", ".lst", ".list")
"""Suffixes of text files that list paths."""
MAX_LIST_BYTES = 2**30
"""Largest size of a list."""
MAX_PATH_BYTES = 2**13
"""Largest size of a path, more than systems allow. A list that is not separated by NUL has none in this many bytes."""
BLOCK_BYTES = 2**16
"""Number of bytes that are read at a time."""
UTF_8_MARK, UTF_16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
"""First bytes of texts that some editors write."""


def listed_paths(file: Path) -> Iterator[Path | UnreadableFile]:
    """Read a text file that lists paths, which are relative to its folder.

    Args:
        file: Path of the list.

    Yields:
        The paths, see :func:`split_list`; or the file itself with the reason if it cannot be read.
    """
    try:
        with open_regular_file(file) as stream:
            if (size := os.fstat(stream.fileno()).st_size) > MAX_LIST_BYTES:
                raise UnreadableImageError(f"has {size:,} bytes, expected a list of at most {MAX_LIST_BYTES:,} bytes")
            yield from split_list(stream, file, read_start(stream), file.parent)
    except (OSError, UnreadableImageError) as error:
        yield UnreadableFile(file, str(error))


def read_start(stream: io.BufferedIOBase) -> bytes:
    """Read the bytes that tell how a list is separated.

    Args:
        stream: The list.

    Returns:
        At least :data:`MAX_PATH_BYTES`, unless the stream has fewer.
    """
    start = b""
    while len(start) < MAX_PATH_BYTES and (block := stream.read1(BLOCK_BYTES)):
        start += block
    return start


def split_list(stream: io.BufferedIOBase, name: Path, start: bytes, folder: Path) -> Iterator[Path | UnreadableFile]:
    """Split a list of any length into paths, with little memory.

    If a NUL is among the first bytes, paths are separated by NUL and may contain line breaks. Otherwise each line is a
    path; a carriage return at its end is removed. Empty entries are skipped. Bytes that are not UTF-8 stay as they are.

    Args:
        stream: The list after ``start``.
        name: What the list is called in messages.
        start: The result of :func:`read_start`.
        folder: The folder that paths are relative to.

    Yields:
        The paths. An entry that is too long to be a path gives the reason instead.
    """
    if start.startswith(UTF_16_MARKS):
        yield UnreadableFile(name, "is text in UTF-16: save it in UTF-8")
        return
    pending = start.removeprefix(UTF_8_MARK)
    separator = b"\0" if b"\0" in pending else b"\n"
    is_too_long, total = False, len(start)
    while True:
        *entries, pending = pending.split(separator)
        for entry in entries:
            if entry and not is_too_long:
                yield from _path(entry, name, folder)
            is_too_long = False
        if len(pending) > MAX_PATH_BYTES:
            if not is_too_long:
                yield from _path(pending, name, folder)
            is_too_long, pending = True, b""
        if total > MAX_LIST_BYTES:
            yield UnreadableFile(name, f"has more than {MAX_LIST_BYTES:,} bytes: the rest is left out")
            return
        block = stream.read1(BLOCK_BYTES)
        if not block:
            break
        pending += block
        total += len(block)
    if not is_too_long:
        yield from _path(pending, name, folder)


def _path(entry: bytes, name: Path, folder: Path) -> Iterator[Path | UnreadableFile]:
    text = os.fsdecode(entry.removesuffix(b"\r"))
    if len(entry) > MAX_PATH_BYTES:
        yield UnreadableFile(name, f"has an entry of more than {MAX_PATH_BYTES:,} bytes: '{shorten(text, 80)}'")
    elif text:
        yield folder / text
