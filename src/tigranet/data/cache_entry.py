"""One entry of the cache of decoded images: a file with the pixels, and beside it a description in JSON."""

import json
import math
import os
import secrets
import shutil
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.cache_locks import mark_as_used
from tigranet.data.regular_file import open_regular_file

CHUNK_BYTES = 2**22
"""How much of a file is in memory while its checksum is computed."""


@dataclass(frozen=True)
class EntryDescription:
    """What an entry says about its pixels and about the files that have none."""

    shape: tuple[int, int, int, int]
    """Number of images, channels, height and width."""
    read: list[int]
    """The positions of the files with pixels, in increasing order."""
    unreadable: list[tuple[int, str]]
    """The positions of all other files, in increasing order, with the reasons."""
    temporary: list[int]
    """The positions among ``unreadable`` where another attempt may succeed."""
    checksum: int
    """CRC-32 of the pixels."""

    @property
    def num_bytes(self) -> int:
        """Size of the pixels in bytes."""
        return 4 * math.prod(self.shape)

    def to_json(self) -> str:
        """Write the description as JSON.

        Returns:
            The text.
        """
        fields: dict[str, Any] = {"shape": self.shape, "read": self.read, "broken": self.unreadable}
        fields |= {"temporary": self.temporary, "crc32": self.checksum}
        return json.dumps(fields | {"description_crc32": _text_checksum(fields)})

    @classmethod
    def from_json(cls, text: str | bytes, num_files: int, size: int) -> "EntryDescription":
        """Read and check a description.

        Args:
            text: The JSON.
            num_files: Number of files that the entry must describe.
            size: Side length that the images must have.

        Returns:
            The description.

        Raises:
            ValueError: If the text does not describe ``num_files`` files with images of side length ``size``.
        """
        try:
            fields = json.loads(text)
            shape = tuple(_integers(fields["shape"]))
            read, temporary = _integers(fields["read"]), _integers(fields["temporary"])
            unreadable = [(position, reason) for position, reason in fields["broken"] if isinstance(reason, str)]
            (checksum,) = _integers([fields["crc32"]])
            description_checksum = fields.pop("description_crc32")
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"not the description of decoded images: {error}") from None
        if description_checksum != _text_checksum(fields):
            raise ValueError("the description is damaged")
        positions = [position for position, _ in unreadable]
        if read != sorted(read) or positions != sorted(_integers(positions)):
            raise ValueError("the positions of the files are not in increasing order")
        if sorted(read + positions) != list(range(num_files)) or not set(temporary) <= set(positions):
            raise ValueError(f"not the description of {num_files} files")
        if len(shape) != 4 or shape[0] != len(read) or shape[1] < 1 or shape[2:] != (size, size) or not read:
            raise ValueError(f"expected {len(read)} images of {size}x{size} pixels, got the shape {shape}")
        return cls(shape, read, unreadable, temporary, checksum)


@dataclass(frozen=True)
class CacheEntry:
    """The place of an entry on the disk."""

    pixel_file: Path
    """32-bit floating-point numbers."""

    @property
    def description_file(self) -> Path:
        """Path of the description."""
        return self.pixel_file.with_suffix(".json")

    @property
    def lock_file(self) -> Path:
        """Path of the lock that a process holds while it decodes the files of this entry."""
        return self.pixel_file.with_name(f".{self.pixel_file.stem}.lock")

    def staged_file(self) -> Path:
        """Return a new name for pixels that are not complete yet."""
        return self.pixel_file.with_name(f".{self.pixel_file.name}.{os.getpid()}-{secrets.token_hex(4)}")

    def staged_files(self) -> list[Path]:
        """Return the pixels of this entry that are not complete, of all processes."""
        return list(self.pixel_file.parent.glob(f".{self.pixel_file.name}.*"))

    def load(self, num_files: int, size: int) -> tuple[Tensor, EntryDescription] | None:
        """Load the entry if it is complete and undamaged.

        Args:
            num_files: Number of files that the entry must describe.
            size: Side length that the images must have.

        Returns:
            The pixels, mapped into memory, and the description; None if a file is missing, damaged or cannot be read.
        """
        try:
            with open_regular_file(self.description_file) as file:
                description = EntryDescription.from_json(file.read(), num_files, size)
            with open_regular_file(self.pixel_file) as file:
                mark_as_used(file)
                is_intact = os.fstat(file.fileno()).st_size == description.num_bytes
                if not is_intact or _checksum(file) != description.checksum:
                    return None
                pixels = map_pixels(file, description)
        except (OSError, ValueError):
            return None
        with suppress(OSError):
            os.utime(self.pixel_file)  # the files that were not used for the longest time are deleted first
        return pixels, description

    def publish(self, staged: Path, description: EntryDescription) -> None:
        """Give complete pixels and their description their final names.

        A reader that opens the files meanwhile may have the new description and the old pixels. Their checksum then
        differs from that in the description, and :meth:`load` returns None rather than a mixture.

        Args:
            staged: The complete pixels, in the same folder.
            description: Their description.

        Raises:
            OSError: If the files cannot be written.
        """
        staged_description = staged.with_name(f"{staged.name}.json")
        try:
            staged_description.write_text(description.to_json())
            for source, target in ((staged_description, self.description_file), (staged, self.pixel_file)):
                if target.is_dir() and not target.is_symlink():
                    shutil.rmtree(target)
                os.replace(source, target)
        finally:
            with suppress(OSError):
                staged_description.unlink()


def map_pixels(file: IO[bytes], description: EntryDescription) -> Float[Tensor, "read channels size size"]:
    """Map pixels into memory. The tensor stays valid when the file is closed, replaced or deleted.

    Args:
        file: The open file with the pixels.
        description: Their description.

    Returns:
        The images. Writing to them does not change the file.
    """
    return torch.from_numpy(np.memmap(file, np.float32, mode="c", shape=description.shape))  # "c": copy on write


def _checksum(file: IO[bytes]) -> int:
    checksum = 0
    while chunk := file.read(CHUNK_BYTES):
        checksum = zlib.crc32(chunk, checksum)
    return checksum


def _text_checksum(fields: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())


def _integers(values: Any) -> list[int]:
    if not isinstance(values, list) or any(type(value) is not int for value in values):
        raise ValueError("expected a list of integers")
    return values
