"""Decode image files once: the pixels are kept in one file per data set and mapped into memory."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.cache_folder import cache_folder
from tigranet.data.letterbox import UnreadableFile, read_letterboxed

MAX_CACHE_BYTES = 8 * 2**30
"""Size of the cache. The files that have not been used for the longest time are deleted first."""
PARTIAL_FILE_LIFETIME = 24 * 60 * 60
"""Seconds after which a partly written file is regarded as left behind by an interrupted run."""
CACHE_FORMAT = 3
"""Version of the cache format. Increase it when decoding changes."""


def decode_images(
    paths: Sequence[Path], size: int, color: bool, step: Callable[[], None] = lambda: None
) -> tuple[Float[Tensor, "read channels size size"], Int[Tensor, " read"], list[UnreadableFile]]:
    """Read image files at one square size, from the cache if they are in it.

    The cache is the sub-folder ``decoded`` of :func:`~tigranet.cache_folder.cache_folder`. An entry is found by the
    names, sizes and modification times of the files. The returned tensor is the cached file mapped into memory, so
    that only the images in use take memory; writing to the tensor does not change the file.

    Args:
        paths: Paths of the files.
        size: Side length of the images in pixels.
        color: Keep all channels instead of the luminance.
        step: Called after each file that is decoded.

    Returns:
        The images in [0, 1]; the positions in ``paths`` of the files that they come from; and the files that cannot be
        read.

    Raises:
        OSError: If the cache folder cannot be written.
        ValueError: If no file can be read, or the images differ in their number of channels.
    """
    folder = cache_folder() / "decoded"
    pixel_file = folder / f"{_fingerprint(paths, size, color)}.f4"
    description_file = pixel_file.with_suffix(".json")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not pixel_file.exists():
            _write(pixel_file, description_file, paths, size, color, step)
            _delete_old_files(folder, pixel_file)
        os.utime(pixel_file)
    except OSError as error:
        raise OSError(f"'{folder}': {error.strerror}: set TIGRANET_CACHE to a folder that can be written") from None
    description = json.loads(description_file.read_text())
    pixels = np.memmap(pixel_file, np.float32, mode="c", shape=tuple(description["shape"]))  # "c": copy on write
    unreadable = [UnreadableFile(paths[position], reason) for position, reason in description["broken"]]
    return torch.from_numpy(pixels), torch.tensor(description["read"], dtype=torch.int64), unreadable


def _write(
    pixel_file: Path, description_file: Path, paths: Sequence[Path], size: int, color: bool, step: Callable[[], None]
) -> None:
    temporary = pixel_file.with_name(f".{pixel_file.name}.{os.getpid()}")
    positions: list[int] = []
    unreadable: list[tuple[int, str]] = []
    channels = 0
    try:
        with temporary.open("wb") as file:
            for position, (path, image) in enumerate(read_letterboxed(paths, size, color)):
                step()
                if isinstance(image, UnreadableFile):
                    unreadable.append((position, image.reason))
                    continue
                channels = channels or image.shape[0]
                if image.shape[0] != channels:
                    raise ValueError(
                        f"expected the same number of channels in all images, got {channels} in "
                        f"'{paths[positions[0]]}' and {image.shape[0]} in '{path}': leave out --color"
                    )
                file.write(image.numpy().tobytes())
                positions.append(position)
        if not positions:
            raise ValueError(f"none of the images can be read; the first, '{paths[0]}': {unreadable[0][1]}")
        shape = (len(positions), channels, size, size)
        description_file.write_text(json.dumps({"shape": shape, "read": positions, "broken": unreadable}))
        os.replace(temporary, pixel_file)  # last, so that the description is complete wherever the pixels exist
    finally:
        temporary.unlink(missing_ok=True)


def _fingerprint(paths: Sequence[Path], size: int, color: bool) -> str:
    digest = hashlib.sha256(f"{CACHE_FORMAT} {size} {color}".encode())
    for path in paths:
        try:
            status = path.stat()
            digest.update(f"{status.st_size} {status.st_mtime_ns} ".encode())
        except OSError:
            digest.update(b"missing ")
        digest.update(os.fsencode(path.absolute()) + b"\0")
    return digest.hexdigest()[:32]


def _delete_old_files(folder: Path, new_file: Path) -> None:
    """Delete partial files of interrupted runs, and the oldest files until the cache is small enough.

    A partial file that another process is still writing has a recent modification time, and stays.
    """
    for file in folder.glob(".*.f4.*"):
        if time.time() - file.stat().st_mtime > PARTIAL_FILE_LIFETIME:
            file.unlink(missing_ok=True)
    files = sorted(folder.glob("*.f4"), key=lambda file: file.stat().st_mtime)
    total = sum(file.stat().st_size for file in files)
    for file in files:
        if total > MAX_CACHE_BYTES and file != new_file:
            total -= file.stat().st_size
            file.unlink()
            file.with_suffix(".json").unlink(missing_ok=True)
