"""Write one shard: decode image files, and store their pixels in a tar file that WebDataset can read."""

import hashlib
import io
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from jaxtyping import Float
from torch import Tensor

from tigranet.atomic_files import atomic_binary_write
from tigranet.data.image_hashes import content_hash, picture_hash
from tigranet.data.letterbox import UnreadableFile, read_letterboxed
from tigranet.data.shards.shard_files import (
    PARTS,
    ROW,
    ShardIndex,
    ShardSummary,
    shard_name,
    write_index,
)

BLOCK = tarfile.BLOCKSIZE
"""Headers and contents in a tar file begin at multiples of this number of bytes."""


class ShardImage(NamedTuple):
    """An image file that belongs to a shard."""

    position: int
    """Its position in the source."""
    path: Path
    """The file."""
    name: str
    """Its path relative to the source."""
    label: int
    """Position of its class among the class names."""
    part: str
    """'train', 'validation' or 'test'; '' if the source does not assign a part."""
    group: str | None
    """Its group, if the images have groups."""


def write_shard(
    folder: Path,
    number: int,
    images: Sequence[ShardImage],
    *,
    plan: str,
    size: int,
    color: bool,
    threads: int = 4,
    step: Callable[[], None] = lambda: None,
) -> ShardIndex:
    """Decode image files and write them to a shard. The same files always give the same bytes.

    The tar file appears when it is complete, and then its index. Files that cannot be read are left out, and their
    paths and the reasons are recorded.

    Args:
        folder: The folder of the shards, which exists.
        number: Number of the shard.
        images: The image files.
        plan: Checksum of the plan, for the index.
        size: Side length of the images in pixels.
        color: Keep all channels instead of the luminance.
        threads: Number of threads that decode.
        step: Called after each file.

    Returns:
        The index of the shard.

    Raises:
        OSError: If a file of the shard cannot be written.
    """
    rows = np.zeros(len(images), ROW)
    kept: list[ShardImage] = []
    unreadable: list[tuple[str, str]] = []
    with atomic_binary_write(folder / shard_name(number)) as file:
        archive = _Archive(file)
        letterboxed = read_letterboxed([image.path for image in images], size, color, threads)
        for image, (_, pixels) in zip(images, letterboxed, strict=True):
            step()
            if isinstance(pixels, UnreadableFile):
                unreadable.append((image.name, pixels.reason))
                continue
            array, bits = _stored_numbers(pixels)
            archive.add(f"{image.position:09d}.cls", str(image.label).encode())
            offset = archive.add_array(f"{image.position:09d}.npy", array)
            rows[len(kept)] = (
                image.position,
                offset,
                image.label,
                PARTS.index(image.part),
                len(array),
                bits,
                int(content_hash(pixels), 16),
                int(picture_hash(pixels), 16),
            )
            kept.append(image)
        num_bytes, sha256 = archive.end()
    rows = rows[: len(kept)]
    channels = tuple(np.unique(rows["channels"]).tolist())
    groups = None if any(image.group is None for image in images) else tuple(str(image.group) for image in kept)
    index = ShardIndex(
        ShardSummary(number, len(kept), num_bytes, sha256, channels),
        rows,
        tuple(image.name for image in kept),
        groups,
        tuple(unreadable),
    )
    write_index(folder, plan, index)
    return index


def _stored_numbers(pixels: Float[Tensor, "channels size size"]) -> tuple[np.ndarray, int]:
    """Return 8-bit numbers if dividing them by 255 gives the same pixels bit for bit, or else the pixels themselves."""
    exact = pixels.numpy().astype("<f4", copy=False)
    codes = np.rint(exact * np.float32(255))
    if codes.min() < 0 or codes.max() > 255:
        return exact, 32
    restored = codes.astype(np.uint8).astype(np.float32) / np.float32(255)
    return (codes.astype(np.uint8), 8) if restored.tobytes() == exact.tobytes() else (exact, 32)


class _Archive:
    """A tar file in the plain format of POSIX, without times, users or other things that differ between runs."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest, self._position = file, hashlib.sha256(), 0

    def _write(self, content: bytes) -> None:
        self._file.write(content)
        self._digest.update(content)
        self._position += len(content)

    def add(self, name: str, content: bytes) -> int:
        """Add a member, and return where its content begins."""
        member = tarfile.TarInfo(name)
        member.size = len(content)
        self._write(member.tobuf(tarfile.USTAR_FORMAT))
        offset = self._position
        self._write(content + bytes(-len(content) % BLOCK))
        return offset

    def add_array(self, name: str, array: np.ndarray) -> int:
        """Add an array in NumPy's format, and return where its numbers begin."""
        content = io.BytesIO()
        np.lib.format.write_array(content, np.ascontiguousarray(array), (1, 0), allow_pickle=False)
        return self.add(name, content.getvalue()) + content.tell() - array.nbytes

    def end(self) -> tuple[int, str]:
        """Write the end of the archive, and return its size and checksum."""
        self._write(bytes(2 * BLOCK))
        self._write(bytes(-self._position % tarfile.RECORDSIZE))
        return self._position, self._digest.hexdigest()
