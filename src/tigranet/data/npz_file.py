"""Read arrays of an .npz file one by one, without pickles and with limits on their size."""

import math
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from tigranet.data.image_errors import one_line
from tigranet.data.regular_file import open_regular_file

SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06", np.lib.format.MAGIC_PREFIX)
"""First bytes of a zip file, of an empty zip file and of a single array."""
MAX_ARRAY_BYTES = 4 * 2**30
"""Largest size of an array after decompression."""
MAX_PACKED_ARRAY_BYTES = 2**26
"""Size above which an array must not be compressed more than ``MAX_RATIO`` times."""
MAX_RATIO = 150
"""Larger ratios are those of arrays of zeros, made to fill the memory."""
MAX_ENTRIES = 10_000
"""Largest number of arrays in a file."""
BLOCK_BYTES = 2**24
"""Number of bytes that are decompressed at a time."""
ENCRYPTED = 1
"""Bit of the flags of an encrypted zip entry."""


class ArrayHeader(NamedTuple):
    """Shape and type of an array in a file."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def num_bytes(self) -> int:
        """Size of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


class NpzArrays:
    """The arrays of an open .npz file, which are read when they are used (see :func:`open_npz`).

    Args:
        path: Path of the file, for messages.
        archive: The open zip file.

    Raises:
        ValueError: If there are too many entries, or two of the same name.
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        self._entries: dict[str, zipfile.ZipInfo] = {}
        entries = archive.infolist()
        if len(entries) > MAX_ENTRIES:
            raise ValueError(f"it has {len(entries):,} entries, more than {MAX_ENTRIES:,}")
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            if name in self._entries:
                raise ValueError(f"it has two arrays with the name '{one_line(name)}'")
            self._entries[name] = entry

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays, in the order of the file."""
        return tuple(self._entries)

    def header(self, name: str) -> ArrayHeader:
        """Read the shape and the type of an array.

        Args:
            name: Name of the array.

        Returns:
            The header.

        Raises:
            ValueError: If there is no such array, or if it is too large, encrypted, or holds Python objects.
        """
        with _reasons(self._path), self._open(name) as stream:
            return _read_header(stream, name, self._entries[name])[0]

    def read(self, name: str) -> np.ndarray:
        """Read an array.

        Args:
            name: Name of the array.

        Returns:
            The array.

        Raises:
            ValueError: If there is no such array, or it cannot be read.
        """
        with _reasons(self._path), self._open(name) as stream:
            header, is_fortran = _read_header(stream, name, self._entries[name])
            values = np.empty(math.prod(header.shape), header.dtype)
            _fill(stream, name, values)
        return values.reshape(header.shape, order="F" if is_fortran else "C")

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        """Read an array in parts along its first axis.

        Args:
            name: Name of the array. It has at least one axis.

        Yields:
            Parts of about ``BLOCK_BYTES``. An array in Fortran order is one part.

        Raises:
            ValueError: If there is no such array, or it cannot be read.
        """
        with _reasons(self._path), self._open(name) as stream:
            header, is_fortran = _read_header(stream, name, self._entries[name])
            if not is_fortran:
                count, *shape = header.shape
                step = max(1, BLOCK_BYTES // max(1, header.num_bytes // max(1, count)))
                for start in range(0, count, step):
                    values = np.empty((min(step, count - start), *shape), header.dtype)
                    _fill(stream, name, values.reshape(-1))
                    yield values
                return
        yield self.read(name)

    def _open(self, name: str) -> zipfile.ZipExtFile:
        if name not in self._entries:
            raise ValueError(f"there is no array '{name}', only {', '.join(self._entries) or 'none'}")
        entry = self._entries[name]
        if entry.flag_bits & ENCRYPTED:
            raise ValueError(f"the array '{name}' is encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"the array '{name}' has a compression that NumPy does not write")
        if entry.file_size > MAX_ARRAY_BYTES:
            raise ValueError(f"the array '{name}' has {entry.file_size:,} bytes, more than {MAX_ARRAY_BYTES:,}")
        if entry.file_size > max(MAX_PACKED_ARRAY_BYTES, MAX_RATIO * entry.compress_size):
            raise ValueError(
                f"the array '{name}' has {entry.file_size:,} bytes compressed to {entry.compress_size:,}, more than "
                f"{MAX_RATIO} to 1: save it with numpy.savez"
            )
        return cast("zipfile.ZipExtFile", self._archive.open(entry))


@contextmanager
def open_npz(path: Path) -> Iterator[NpzArrays]:
    """Open an .npz file for the duration of a ``with`` statement.

    Args:
        path: Path of the file.

    Yields:
        Its arrays.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file is not a complete .npz file. The message names the file.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no file '{path}'")
    with ExitStack() as stack:
        with _reasons(path):
            file = stack.enter_context(open_regular_file(path))
            signature = file.read(6)
            file.seek(0)
            if not signature.startswith(SIGNATURES):
                raise ValueError("its content is not that of an .npz file: save it with numpy.savez")
            if signature.startswith(np.lib.format.MAGIC_PREFIX):
                raise ValueError("it is a single array, expected an archive of arrays (numpy.savez)")
            arrays = NpzArrays(path, stack.enter_context(zipfile.ZipFile(file)))
        yield arrays


@contextmanager
def _reasons(path: Path) -> Iterator[None]:
    """Convert the exceptions for a damaged file to one kind with one line of text that names the file."""
    try:
        yield
    except Exception as error:  # zipfile, zlib and the parser of NumPy's headers have many kinds
        reason = one_line(str(error)) or type(error).__name__
        raise ValueError(f"'{path}' cannot be read as NumPy's .npz: {reason}") from None


def read_npz(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Read arrays from an .npz file.

    Args:
        path: Path of the file.
        *names: Names of the arrays to read. Without names, all arrays are read.

    Returns:
        The arrays by name, in the order of ``names`` or of the file.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file is not a complete .npz file, lacks an array, or holds Python objects.
    """
    with open_npz(path) as arrays:
        return {name: arrays.read(name) for name in names or arrays.names}


def _read_header(stream: zipfile.ZipExtFile, name: str, entry: zipfile.ZipInfo) -> tuple[ArrayHeader, bool]:
    """Return the header and whether the array is in Fortran order. The sizes must agree with the zip file."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, is_fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"the array '{name}' has the format version {version}, expected (1, 0) or (2, 0)")
    if dtype.hasobject:
        raise ValueError(f"the array '{name}' holds Python objects: save numbers or text")
    header = ArrayHeader(tuple(map(int, shape)), dtype)
    expected = entry.file_size - stream.tell()
    if min(header.shape, default=0) < 0 or header.num_bytes != expected:
        raise ValueError(
            f"the array '{name}' of shape {header.shape} and type {dtype} does not have {expected:,} bytes"
        )
    return header, is_fortran


def _fill(stream: zipfile.ZipExtFile, name: str, values: np.ndarray) -> None:
    """Read the values of a flat array in blocks."""
    if not values.nbytes:
        return
    target = values.view(np.uint8).data
    position = 0
    while position < len(target):
        block = stream.read(min(BLOCK_BYTES, len(target) - position))
        if not block:
            raise EOFError(f"the array '{name}' is truncated")
        target[position : position + len(block)] = block
        position += len(block)
