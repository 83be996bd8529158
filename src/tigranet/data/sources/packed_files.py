"""Read some files of a folder or of a .tar.gz archive. Nothing is unpacked to disk, and sizes are limited."""

import gzip
import tarfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from tigranet.data.regular_file import BinaryFile, open_regular_file

MAX_MEMBERS = 1000
"""Largest number of files in an archive."""
OTHER_BYTES = 2**24
"""Size that the other files of an archive may have together."""


def read_packed_files(path: Path, names: Collection[str], max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Read files of a folder or of a .tar.gz archive, one after the other.

    Args:
        path: The folder or the archive. In an archive, the files may be in any folder.
        names: Names of the files, without folders.
        max_bytes: Largest size of each of these files.

    Yields:
        Name and content of each file: of a folder in the order of ``names``, of an archive in its own order.

    Raises:
        ValueError: If a file is missing or too large, or is not a regular file, or if the archive is damaged or unpacks
            to more bytes than the files can have.
    """
    yield from _read_folder(path, names, max_bytes) if path.is_dir() else _read_archive(path, names, max_bytes)


def _read_folder(folder: Path, names: Collection[str], max_bytes: int) -> Iterator[tuple[str, bytes]]:
    for name in names:
        try:
            with open_regular_file(folder / name) as file:
                content = file.read(max_bytes + 1)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        _check_size(name, len(content), max_bytes)
        yield name, content


def _read_archive(path: Path, names: Collection[str], max_bytes: int) -> Iterator[tuple[str, bytes]]:
    missing = dict.fromkeys(names)  # in this order
    try:
        with (
            open_regular_file(path) as file,
            _LimitedGzipFile(file, len(names) * max_bytes + OTHER_BYTES) as unpacked,
            tarfile.open(fileobj=unpacked, mode="r|") as archive,
        ):
            for number, member in enumerate(archive):
                if number == MAX_MEMBERS:
                    raise ValueError(f"it has more than {MAX_MEMBERS} files")
                name = PurePosixPath(member.name).name
                content = archive.extractfile(member) if name in missing and member.isreg() else None
                if content is None:
                    continue
                _check_size(name, member.size, max_bytes)
                yield name, content.read()
                del missing[name]
                if not missing:
                    return
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise ValueError(str(error)) from None
    raise ValueError(f"it has no {next(iter(missing))}")


def _check_size(name: str, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise ValueError(f"{name} has more than {max_bytes:,} bytes")


class _LimitedGzipFile(gzip.GzipFile):
    """A compressed file that is refused after a number of bytes, however much it unpacks to."""

    def __init__(self, file: BinaryFile, max_bytes: int) -> None:
        super().__init__(fileobj=file)
        self._max_bytes = max_bytes

    def read(self, size: int | None = -1) -> bytes:
        """Read at most ``size`` bytes."""
        content = super().read(size)
        if self.tell() > self._max_bytes:
            raise ValueError(f"it unpacks to more than {self._max_bytes:,} bytes")
        return content
