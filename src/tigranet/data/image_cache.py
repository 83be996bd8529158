"""Decode image files once: the pixels are kept in one file per data set and mapped into memory."""

import hashlib
import io
import os
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.cache_folder import cache_folder
from tigranet.data.cache_entry import CacheEntry, EntryDescription, map_pixels
from tigranet.data.cache_locks import exclusive_lock, is_used
from tigranet.data.letterbox import TemporarilyUnreadableFile, UnreadableFile, read_letterboxed
from tigranet.data.luminance import fit_channels

MAX_CACHE_BYTES = 8 * 2**30
"""Size of the cache. The files that have not been used for the longest time are deleted first."""
PARTIAL_FILE_LIFETIME = 24 * 60 * 60
"""Seconds after which a partly written file is regarded as left behind by an interrupted run."""
CACHE_FORMAT = 5
"""Version of the cache format. Increase it when decoding changes."""


class DecodeCacheWarning(UserWarning):
    """Decoded images cannot be stored, so the files are decoded again next time."""


def decode_images(
    paths: Sequence[Path], size: int, color: bool, step: Callable[[], None] = lambda: None
) -> tuple[Float[Tensor, "read channels size size"], Int[Tensor, " read"], list[UnreadableFile]]:
    """Read image files at one square size, from the cache if they are in it.

    The cache is the sub-folder ``decoded`` of :func:`~tigranet.cache_folder.cache_folder`. An entry is found by the
    names, sizes and times of modification of the files. The returned tensor is the cached file mapped into memory, so
    that only the images in use take memory; writing to the tensor does not change the file.

    An entry that is damaged or incomplete is made again. Files that could not be reached, for example because a
    permission was denied, are tried again each time. If several processes need the same entry, one of them makes it
    and the others wait. If the cache cannot be written, a :class:`DecodeCacheWarning` says so, and the images are in a
    temporary file or in memory.

    Args:
        paths: Paths of the files.
        size: Side length of the images in pixels.
        color: Keep all channels instead of the luminance. If there are grey images and images of three channels, the
            grey ones are repeated in three channels.
        step: Called after each file that is decoded.

    Returns:
        The images in [0, 1]; the positions in ``paths`` of the files that they come from; and the files that cannot be
        read.

    Raises:
        ValueError: If no file can be read, or if images of other numbers of channels are mixed.
    """
    folder: Path | None = None
    try:
        folder = cache_folder() / "decoded"
        entry = CacheEntry(folder / f"{_fingerprint(paths, size, color)}.f4")
        result = _load(entry, paths, size, color)
        if result is None:
            folder.mkdir(parents=True, exist_ok=True)
            with exclusive_lock(entry.lock_file, lambda: _file_sizes(entry.staged_files())) as is_alone:
                if is_alone:
                    _delete(entry.staged_files())  # of processes that were killed
                result = _load(entry, paths, size, color)  # another process may have made it
                if result is None:
                    result = _decode_into(entry, paths, size, color, step)
    except OSError as error:
        _warn(folder, error)
        result = _decode_unnamed(paths, size, color, step)
    pixels, description = result
    unreadable = [UnreadableFile(paths[position], reason) for position, reason in description.unreadable]
    return pixels, torch.tensor(description.read, dtype=torch.int64), unreadable


def _load(entry: CacheEntry, paths: Sequence[Path], size: int, color: bool) -> tuple[Tensor, EntryDescription] | None:
    """Load an entry, unless it is missing, damaged, or lacks a file that can be reached now."""
    result = entry.load(len(paths), size)
    if result is None or not result[1].temporary:
        return result
    retries = read_letterboxed([paths[position] for position in result[1].temporary], size, color)
    return result if all(isinstance(image, TemporarilyUnreadableFile) for _, image in retries) else None


def _decode_into(
    entry: CacheEntry, paths: Sequence[Path], size: int, color: bool, step: Callable[[], None]
) -> tuple[Tensor, EntryDescription]:
    """Decode all files into a new entry. If a file changes meanwhile, the entry is not kept."""
    staged = entry.staged_file()
    try:
        with staged.open("x+b") as file:
            description = _decode(file, paths, size, color, step)
        if f"{_fingerprint(paths, size, color)}.f4" == entry.pixel_file.name:
            try:
                entry.publish(staged, description)
                _delete_old_files(entry.pixel_file.parent, entry.pixel_file)
            except OSError as error:
                _warn(staged.parent, error)
        if (result := entry.load(len(paths), size)) is not None:
            return result
        with staged.open("rb") as file:  # the pixels are complete, and stay usable when their file is deleted
            return map_pixels(file, description), description
    finally:
        _delete([staged])


def _decode_unnamed(
    paths: Sequence[Path], size: int, color: bool, step: Callable[[], None]
) -> tuple[Tensor, EntryDescription]:
    """Decode all files into a temporary file without a name, or into memory if that is not possible either."""
    try:
        with tempfile.TemporaryFile() as file:
            description = _decode(file, paths, size, color, step)
            file.flush()
            return map_pixels(file, description), description
    except OSError:
        buffer = io.BytesIO()
        description = _decode(buffer, paths, size, color, step)
        pixels = np.frombuffer(buffer.getbuffer(), np.float32).reshape(description.shape)
        return torch.from_numpy(pixels), description


def _decode(
    file: IO[bytes] | io.BytesIO, paths: Sequence[Path], size: int, color: bool, step: Callable[[], None]
) -> EntryDescription:
    """Decode all files and write their pixels to ``file``, which is empty."""
    positions: list[int] = []
    unreadable: list[tuple[int, str]] = []
    temporary: list[int] = []
    channels = checksum = 0
    for position, (path, image) in enumerate(read_letterboxed(paths, size, color)):
        step()
        if isinstance(image, UnreadableFile):
            unreadable.append((position, image.reason))
            if isinstance(image, TemporarilyUnreadableFile):
                temporary.append(position)
            continue
        channels = channels or image.shape[0]
        if (channels, image.shape[0]) == (1, 3):  # the first colour image, after grey ones
            checksum, channels = _repeat_in_three_channels(file, len(positions), size), 3
        image = fit_channels(image, channels)
        if image.shape[0] != channels:
            raise ValueError(
                f"expected the same number of channels in all images, or 1 and 3, got {channels} in "
                f"'{paths[positions[0]]}' and {image.shape[0]} in '{path}': use --grey"
            )
        content = image.numpy().tobytes()
        checksum = zlib.crc32(content, checksum)
        file.write(content)
        positions.append(position)
    if not positions:
        raise ValueError(f"none of the images can be read; the first, '{paths[0]}': {unreadable[0][1]}")
    return EntryDescription((len(positions), channels, size, size), positions, unreadable, temporary, checksum)


def _repeat_in_three_channels(file: IO[bytes] | io.BytesIO, count: int, size: int) -> int:
    """Repeat each of the grey images that a file consists of in three channels, and return the new checksum."""
    num_bytes = 4 * size * size
    for position in reversed(range(count)):  # from the last one, so that no image is overwritten before it is read
        file.seek(position * num_bytes)
        plane = file.read(num_bytes)
        file.seek(3 * position * num_bytes)
        file.write(3 * plane)
    file.seek(0)
    checksum = 0
    for _ in range(count):
        checksum = zlib.crc32(file.read(3 * num_bytes), checksum)
    return checksum


def _fingerprint(paths: Sequence[Path], size: int, color: bool) -> str:
    digest = hashlib.sha256(f"{CACHE_FORMAT} {size} {color}".encode())
    for path in paths:
        try:
            status = path.stat()
            # The time of the last change of status also changes if the modification time is set back.
            digest.update(f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} ".encode())
        except (OSError, ValueError):  # ValueError: a NUL in the path
            digest.update(b"missing ")
        digest.update(os.fsencode(path.absolute()) + b"\0")
    return digest.hexdigest()[:32]


def _delete_old_files(folder: Path, new_file: Path) -> None:
    """Delete partial files of interrupted runs, and the oldest files until the cache is small enough.

    A partial file that another process is still writing has a recent modification time, and stays. Files that a process
    uses stay too. Other processes may delete files at the same time.
    """
    remnants = [*folder.glob(".*"), *(file for file in folder.glob("*.json") if not file.with_suffix(".f4").exists())]
    old = time.time() - PARTIAL_FILE_LIFETIME
    _delete([file for file, status in _statuses(remnants) if status.st_mtime < old])
    statuses = sorted(_statuses(list(folder.glob("*.f4"))), key=lambda item: item[1].st_mtime)
    total = sum(status.st_size for _, status in statuses)
    for file, status in statuses:
        if total > MAX_CACHE_BYTES and file != new_file and not is_used(file):
            total -= status.st_size
            _delete([file, file.with_suffix(".json")])


def _statuses(files: Sequence[Path]) -> list[tuple[Path, os.stat_result]]:
    """Return the files that still exist, with their sizes and times."""
    statuses = []
    for file in files:
        with suppress(OSError):
            statuses.append((file, file.stat()))
    return statuses


def _warn(folder: Path | None, error: OSError) -> None:
    warnings.warn(
        f"decoded images are not stored in '{folder or 'the cache'}': {error.strerror or error}: "
        "set TIGRANET_CACHE to a folder that can be written and has space",
        DecodeCacheWarning,
        stacklevel=3,
    )


def _file_sizes(files: Sequence[Path]) -> dict[Path, int]:
    return {file: status.st_size for file, status in _statuses(files)}


def _delete(files: Sequence[Path]) -> None:
    """Delete files, except those that another process deleted first or does not let go."""
    for file in files:
        with suppress(OSError):
            file.unlink()
