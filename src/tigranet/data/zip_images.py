"""The image files in a zip archive, which are read into memory one by one. Nothing is unpacked to the disk."""

import os
import threading
import weakref
import zipfile
from collections.abc import Iterator
from functools import partial
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, cast

from tigranet.data.image_errors import UnreadableImageError, one_line
from tigranet.data.image_io import SUFFIXES
from tigranet.data.letterbox import UnreadableFile
from tigranet.data.packed_image import PackedImage
from tigranet.data.regular_file import open_regular_file

MAX_DIRECTORY_BYTES = 2**25
"""Largest size of the table of contents, which is read into memory: that of about 300,000 images."""
BLOCK_BYTES = 2**24
"""Number of bytes that are decompressed at a time."""
MAX_SMALL_BYTES = 2**26
"""Size above which a file must not be compressed more than ``MAX_RATIO`` times."""
MAX_RATIO = 150
"""Larger ratios are those of files of zeros, made to fill the memory."""
ENCRYPTED = 1
"""Bit of the flags of an encrypted member."""
COPIED_BY_MACOS = "__MACOSX"
"""Folder that macOS adds to archives; it holds no images, although its files are called like images."""


def zip_images(path: Path) -> Iterator[PackedImage | UnreadableFile]:
    """Find the image files in a zip archive.

    As in a folder, files with other suffixes and hidden files are skipped. Members are recognised by their content when
    they are read. Their names are never used as paths, so it does not matter if they lead out of the archive.

    Args:
        path: Path of the archive.

    Yields:
        The images in the order of the archive, called by the path of the archive and their name in it; or the archive
        itself with the reason if it cannot be read. An image that is encrypted, damaged or too large says so when it is
        read.
    """
    try:
        archive = _Archive(path)
    except UnreadableImageError as error:
        yield UnreadableFile(path, str(error))
        return
    for entry in archive.entries:
        if _is_image(entry):
            # A name that begins with a slash must not replace the path of the archive.
            name = Path(f"{path}/{entry.filename}")
            yield PackedImage(name, entry.file_size, partial(archive.read, entry))


def _is_image(entry: zipfile.ZipInfo) -> bool:
    parts = PurePosixPath(entry.filename).parts
    is_hidden = any(part.startswith(".") and part not in (".", "..") for part in parts)
    is_file = not entry.is_dir() and os.path.splitext(entry.filename)[1].lower() in SUFFIXES
    return is_file and not is_hidden and COPIED_BY_MACOS not in parts


class _Archive:
    """An open archive. It is closed when no image refers to it any more."""

    def __init__(self, path: Path) -> None:
        file = open_regular_file(path)
        weakref.finalize(self, file.close)
        self._lock = threading.Lock()  # the counters of ZipFile are not made for several threads
        try:
            self._zip = zipfile.ZipFile(cast("Any", _GuardedFile(file)))
        except Exception as error:  # zipfile and struct have many kinds
            reason = one_line(str(error)) or type(error).__name__
            raise UnreadableImageError(f"cannot be read as a zip archive: {reason}") from None

    @property
    def entries(self) -> list[zipfile.ZipInfo]:
        return self._zip.infolist()

    def read(self, entry: zipfile.ZipInfo) -> bytes:
        if entry.flag_bits & ENCRYPTED:
            raise UnreadableImageError("is encrypted: unpack the archive, and give the folder")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnreadableImageError(
                f"is compressed by method {entry.compress_type}, expected none or deflate: unpack the archive, and "
                "give the folder"
            )
        if entry.file_size > max(MAX_SMALL_BYTES, MAX_RATIO * entry.compress_size):
            raise UnreadableImageError(
                f"has {entry.file_size:,} bytes compressed to {entry.compress_size:,}, more than {MAX_RATIO} to 1"
            )
        try:
            with self._lock, self._zip.open(entry) as stream:
                return b"".join(iter(partial(stream.read, BLOCK_BYTES), b""))
        except Exception as error:  # zipfile and zlib have many kinds
            reason = one_line(str(error)) or type(error).__name__
            raise UnreadableImageError(f"cannot be unpacked: {reason}") from None


class _GuardedFile:
    """A file that is not read in large pieces: the sizes that an archive states may be false."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file

    def read(self, count: int | None = -1) -> bytes:
        if count is None or count < 0:
            position = self._file.tell()
            count = self._file.seek(0, os.SEEK_END) - position
            self._file.seek(position)
        if count > MAX_DIRECTORY_BYTES:
            raise ValueError(
                f"its table of contents has {count:,} bytes, more than {MAX_DIRECTORY_BYTES:,}: unpack it, and give "
                "the folder"
            )
        return self._file.read(count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
