"""The header of a safetensors file: names, shapes and types of its tensors, read without the tensors themselves.

The file starts with the length of the header (8 bytes, little-endian), the header as JSON, and the data of all tensors
one after the other.
"""

import math
import os
import reprlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tigranet.json_file import parse_json_object
from tigranet.quoted_text import shorten

MAX_HEADER_BYTES = 16_000_000
"""Largest header. That of a network with 10,000 tensors has 1 to 2 million bytes."""
MAX_DIMENSIONS = 16
"""Largest number of dimensions of a tensor."""
LENGTH_BYTES = 8
"""Size of the number at the start of the file."""
BYTES_PER_NUMBER = {
    "BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8,
    "I64": 8, "U64": 8, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip
"""Types of number by their names in the format, with their sizes in bytes."""


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a safetensors file."""

    dtype: str
    """Type of its numbers, a key of :data:`BYTES_PER_NUMBER`."""
    shape: tuple[int, ...]
    """Its shape."""


@dataclass(frozen=True)
class SafetensorsHeader:
    """What a safetensors file holds."""

    tensors: dict[str, StoredTensor]
    """The tensors by name."""
    metadata: dict[str, str]
    """Further values by name."""


def read_safetensors_header(path: Path) -> SafetensorsHeader:
    """Read the header of a safetensors file, and check that the file holds exactly the data that it describes.

    Args:
        path: The file.

    Returns:
        The header.

    Raises:
        ValueError: If the file is not a complete safetensors file.
        OSError: If the file cannot be read.
    """
    with path.open("rb") as file:
        file_size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        data_size = file_size - LENGTH_BYTES - length
        if file_size <= LENGTH_BYTES or data_size < 0:
            raise _incomplete(path, f"it has {file_size:,} bytes, which do not hold a header")
        if length > MAX_HEADER_BYTES:
            raise _incomplete(path, f"expected a header of at most {MAX_HEADER_BYTES:,} bytes, got {length:,}")
        header = file.read(length)
    try:
        entries = parse_json_object(header, "header", "a table of tensors")
    except ValueError as error:
        raise _incomplete(path, str(error)) from None
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _incomplete(path, "expected metadata of text values")
    tensors, intervals = {}, []
    for name, entry in entries.items():
        try:
            tensors[name], interval = _parse_entry(entry)
        except ValueError as error:
            raise _incomplete(path, f"tensor '{shorten(name)}': {error}") from None
        intervals.append(interval)
    position = 0
    for start, end in sorted(intervals):
        if start != position:
            raise _incomplete(path, f"its tensors overlap or leave a gap at byte {min(start, position):,} of the data")
        position = end
    if position != data_size:
        raise _incomplete(path, f"its tensors have {position:,} bytes, the file holds {data_size:,}")
    return SafetensorsHeader(tensors, metadata)


def _parse_entry(entry: Any) -> tuple[StoredTensor, tuple[int, int]]:
    """Return a tensor, and the interval of its bytes."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError("expected the entries dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BYTES_PER_NUMBER:
        raise ValueError(f"unknown dtype {reprlib.repr(dtype)}")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError("expected a shape and two offsets of whole numbers")
    if offsets[1] - offsets[0] != math.prod(shape) * BYTES_PER_NUMBER[dtype]:
        raise ValueError("its shape does not fit its number of bytes")
    return StoredTensor(dtype, tuple(shape)), (offsets[0], offsets[1])


def _are_sizes(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) <= MAX_DIMENSIONS
        and all(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 for value in values)
    )


def _incomplete(path: Path, reason: str) -> ValueError:
    return ValueError(f"'{path}' is not a complete safetensors file: {reason}")
