"""Files decoded once: images of one size in a file of their own, read from there whenever they are needed."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pooch
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.data.letterbox import UnreadableFile, read_letterboxed

LARGEST_CACHE = 8 * 2**30
"""Bytes; what was used longest ago goes first."""
ABANDONED = 24 * 60 * 60
"""Seconds after which a file that is half written is nobody's."""
CACHE_FORMAT = 3
"""Another number whenever files come to be read otherwise: what was decoded before is decoded again."""


def decode_images(
    paths: Sequence[Path], size: int, color: bool, step: Callable[[], None] = lambda: None
) -> tuple[Float[Tensor, "read channels size size"], Int[Tensor, " read"], list[UnreadableFile]]:
    """The images of ``paths`` on squares of ``size``, which of the paths they are of, and the files that were left out.

    They are kept in the user's cache (or the folder ``TIGRANET_CACHE``), by the names, sizes and dates of the files,
    and the tensor is that file mapped into memory: however many images there are, only those in use take room there.
    """
    folder = Path(os.environ.get("TIGRANET_CACHE") or pooch.os_cache("tigranet")) / "decoded"
    target = folder / f"{_fingerprint(paths, size, color)}.f4"
    about = target.with_suffix(".json")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            _write(target, about, paths, size, color, step)
            _forget(folder, target)
        os.utime(target)
    except OSError as error:
        raise OSError(f"'{folder}': {error.strerror}: set TIGRANET_CACHE to a folder that can be written") from None
    found = json.loads(about.read_text())
    pixels = np.memmap(target, np.float32, mode="c", shape=tuple(found["shape"]))  # whoever changes it, changes a copy
    broken = [UnreadableFile(paths[number], reason) for number, reason in found["broken"]]
    return torch.from_numpy(pixels), torch.tensor(found["read"], dtype=torch.int64), broken


def _write(target: Path, about: Path, paths: Sequence[Path], size: int, color: bool, step: Callable[[], None]) -> None:
    staged = target.with_name(f".{target.name}.{os.getpid()}")
    read: list[int] = []
    broken: list[tuple[int, str]] = []
    channels = 0
    try:
        with staged.open("wb") as file:
            for number, (path, image) in enumerate(read_letterboxed(paths, size, color)):
                step()
                if isinstance(image, UnreadableFile):
                    broken.append((number, image.reason))
                    continue
                channels = channels or image.shape[0]
                if image.shape[0] != channels:
                    others = f"'{path}' has {image.shape[0]} channels, '{paths[read[0]]}' has {channels}"
                    raise ValueError(f"{others}: leave out --color")
                file.write(image.numpy().tobytes())
                read.append(number)
        if not read:
            raise ValueError(f"none of the images can be read; the first, '{paths[0]}': {broken[0][1]}")
        shape = (len(read), channels, size, size)
        about.write_text(json.dumps({"shape": shape, "read": read, "broken": broken}))
        os.replace(staged, target)  # last: where it is, the other is whole
    finally:
        staged.unlink(missing_ok=True)


def _fingerprint(paths: Sequence[Path], size: int, color: bool) -> str:
    digest = hashlib.sha256(f"{CACHE_FORMAT} {size} {color}".encode())
    for path in paths:
        try:
            found = path.stat()
            digest.update(f"{found.st_size} {found.st_mtime_ns} ".encode())
        except OSError:
            digest.update(b"missing ")
        digest.update(os.fsencode(path.absolute()) + b"\0")
    return digest.hexdigest()[:32]


def _forget(folder: Path, kept: Path) -> None:
    """Make room, and clear away what runs that were killed have left; one that still writes touches its file."""
    for file in folder.glob(".*.f4.*"):
        if time.time() - file.stat().st_mtime > ABANDONED:
            file.unlink(missing_ok=True)
    files = sorted(folder.glob("*.f4"), key=lambda file: file.stat().st_mtime)
    total = sum(file.stat().st_size for file in files)
    for file in files:
        if total > LARGEST_CACHE and file != kept:
            total -= file.stat().st_size
            file.unlink()
            file.with_suffix(".json").unlink(missing_ok=True)
