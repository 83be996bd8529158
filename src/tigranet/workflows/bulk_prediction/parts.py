"""Parts of the work: references to some thousand images each, which a worker turns into images.

A part is small, and is stored in the plan as one JSON object. The same part always gives the same images in the same
order, so that a part whose worker died can be done again.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from tigranet.data.image_content import RemoteImage
from tigranet.data.letterbox import ImageItem, UnreadableFile
from tigranet.data.parquet_images import parquet_images
from tigranet.data.tar_images import TarError, tar_images
from tigranet.remote_files import RemoteFiles, is_url

NamedImage = tuple[str, ImageItem]
"""What an image is called in the answers, and the image."""


@dataclass(frozen=True)
class FilePart:
    """Image files, each of its own.

    Args:
        files: Absolute paths or URLs. What cannot be used is a pair of its path and the reason.
    """

    files: tuple[str | tuple[str, str], ...]

    @property
    def images(self) -> int:
        """Number of images."""
        return len(self.files)

    @property
    def waits(self) -> bool:
        """Whether reading an image means to wait for a store."""
        return any(isinstance(file, str) and is_url(file) for file in self.files)

    def read(self) -> Iterator[NamedImage]:
        """Return the images, which are read when they are converted.

        Yields:
            The name and the image, or the reason why there is none.
        """
        for file in self.files:
            if isinstance(file, tuple):
                yield file[0], UnreadableFile(Path(file[0]), file[1])
            else:
                yield file, RemoteImage(file) if is_url(file) else Path(file)


@dataclass(frozen=True)
class TarPart:
    """Images that follow each other in a tar file.

    Args:
        tar: Absolute path or URL of the tar file.
        num_bytes: Its size when the work was planned, or None if the store does not say.
        offset: Where the first image begins.
        images: Number of images, or None for all that follow, where counting them would mean to read the whole file.
    """

    tar: str
    num_bytes: int | None
    offset: int
    images: int | None
    waits = False

    def read(self) -> Iterator[NamedImage]:
        """Read the images one after the other.

        Yields:
            The name and the image, or the reason why there is none. A file of an unknown number of images that is
            damaged ends with an entry for the file itself.

        Raises:
            OSError: If the file cannot be read, or is no longer what it was.
        """
        with open_shard(self.tar, self.num_bytes) as file:
            try:
                yield from tar_images(file, self.tar, self.offset, self.images)
            except TarError as error:
                if self.images is not None:
                    raise OSError(f"'{self.tar}' has changed since the work was planned: it {error}") from None
                yield self.tar, UnreadableFile(Path(self.tar), str(error))


@dataclass(frozen=True)
class ParquetPart:
    """Row groups that follow each other in a Parquet file.

    Args:
        parquet: Absolute path or URL of the file.
        num_bytes: Its size when the work was planned, or None if the store does not say.
        first: Number of the first row group.
        stop: Number after that of the last row group.
        images: Number of rows.
        has_paths: Whether the rows hold paths or URLs, rather than the images.
    """

    parquet: str
    num_bytes: int | None
    first: int
    stop: int
    images: int
    has_paths: bool

    @property
    def waits(self) -> bool:
        """Whether reading an image may mean to wait for a store."""
        return self.has_paths

    def read(self) -> Iterator[NamedImage]:
        """Read the rows one after the other.

        Yields:
            The name and the image, or the reason why there is none.

        Raises:
            OSError: If the file cannot be read, or is no longer what it was.
        """
        with open_shard(self.parquet, self.num_bytes) as file:
            try:
                yield from parquet_images(file, self.parquet, self.first, self.stop)
            except ValueError as error:
                raise OSError(f"'{self.parquet}' {error}") from None


Part = FilePart | TarPart | ParquetPart
"""Some images, as a reference."""
_KINDS: dict[str, type[Part]] = {"files": FilePart, "tar": TarPart, "parquet": ParquetPart}


def part_to_json(part: Part) -> dict[str, Any]:
    """Return the JSON object that stands for a part.

    Args:
        part: The part.

    Returns:
        Values that :func:`part_from_json` turns into an equal part.

    Example:
        >>> part_to_json(FilePart(("a.png", ("b.png", "is a named pipe"))))
        {'files': ('a.png', ('b.png', 'is a named pipe'))}
    """
    return asdict(part)


def part_from_json(values: dict[str, Any]) -> Part:
    """Return the part that a JSON object stands for.

    Args:
        values: The object.

    Returns:
        The part.

    Raises:
        ValueError: If it is not such an object.
    """
    kind = next((kind for name, kind in _KINDS.items() if name in values), None)
    try:
        if kind is None:
            raise TypeError
        if kind is FilePart:
            return FilePart(tuple(file if isinstance(file, str) else (file[0], file[1]) for file in values["files"]))
        return kind(**values)
    except (TypeError, IndexError, KeyError):
        raise ValueError(f"expected a part with one of {', '.join(_KINDS)}, got the keys {sorted(values)}") from None


def shard_size(shard: str) -> int | None:
    """Return the number of bytes of a tar or Parquet file.

    Args:
        shard: Path or URL of the file.

    Returns:
        The size, or None if the store does not say.

    Raises:
        OSError: If there is no such file.
    """
    return RemoteFiles(shard).size(shard) if is_url(shard) else os.path.getsize(shard)


@contextmanager
def open_shard(shard: str, num_bytes: int | None) -> Iterator[BufferedReader]:
    """Open a tar or Parquet file, and check that it has the size that it had.

    Args:
        shard: Path or URL of the file.
        num_bytes: Its earlier size, or None if it is not known.

    Yields:
        The file.

    Raises:
        OSError: If the file cannot be opened, or has another size.
    """
    size = shard_size(shard)
    if num_bytes is not None and size != num_bytes:
        raise OSError(
            f"'{shard}' has changed since the work was planned: it has {size} bytes, expected {num_bytes}; begin again "
            "in another output folder"
        )
    if is_url(shard):
        with RemoteFiles(shard).open(shard) as file:
            yield file
    else:
        with open(shard, "rb") as local_file:
            yield local_file
