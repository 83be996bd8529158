"""The files in a folder of shards: tar files, an index beside each of them, and a manifest that is written last.

* ``shard-000000.tar`` has two members per image, as WebDataset expects: ``000000007.cls`` with the label as a number,
  and ``000000007.npy`` with the pixels, of shape (channels, height, width). The number is the position of the image in
  the source.
* ``shard-000000.npz`` says where the pixels of each image begin, so that images can be read in any order.
* ``shards.json`` has the names of the classes, the preparation of the images, and the checksums of the tar files.
"""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tigranet.atomic_files import atomic_binary_write, atomic_write
from tigranet.json_file import read_json_object

MANIFEST = "shards.json"
"""Name of the manifest. A folder that has it is complete."""
FORMAT = 1
"""Version of the format of all files."""
MAX_MANIFEST_BYTES = 256_000_000
"""Largest manifest, enough for a million shards."""
PARTS = ("", "train", "validation", "test")
"""Parts of a data set, by their number in the index. The first one stands for images without a part."""
ROW = np.dtype(
    [
        ("position", "<i8"),
        ("offset", "<i8"),
        ("label", "<i4"),
        ("part", "<i4"),
        ("channels", "<i4"),
        ("bits", "<i4"),
        ("content", "<u8"),
        ("picture", "<u8"),
    ]
)
"""What the index has about each image: its position in the source, where its pixels begin in the tar file, its label,
the number of its part in :data:`PARTS`, its channels, the bits per number (8, or 32 for floating point), and the hashes
of :mod:`~tigranet.data.image_hashes`."""
PREPARATION = (
    "The longer side is scaled to the size by bilinear interpolation, and the rest of the square has the median of the "
    "border. Values in [0, 1] are stored as 8-bit numbers, to be divided by 255, where that gives the same float32 "
    "numbers, and as float32 numbers elsewhere."
)
"""How images were changed before they were stored, for readers of the manifest."""


class ShardSummary(NamedTuple):
    """What is recorded about a shard."""

    number: int
    """Number of the shard, from 0 on."""
    images: int
    """Number of images in it."""
    num_bytes: int
    """Size of the tar file."""
    sha256: str
    """Checksum of the tar file."""
    channels: tuple[int, ...]
    """The different numbers of channels of its images."""


class ShardIndex(NamedTuple):
    """The content of the index of a shard."""

    summary: ShardSummary
    rows: np.ndarray
    """One :data:`ROW` per image, in the order of the tar file."""
    names: tuple[str, ...]
    """Path of each image relative to its source."""
    groups: tuple[str, ...] | None
    """Group of each image, if there are groups."""
    unreadable: tuple[tuple[str, str], ...]
    """Path and reason of each file that could not be read."""


def shard_name(number: int, suffix: str = ".tar") -> str:
    """Return the name of a file of a shard.

    Args:
        number: Number of the shard.
        suffix: ``.tar``, or ``.npz`` for its index.

    Example:
        >>> shard_name(7), shard_name(7, ".npz")
        ('shard-000007.tar', 'shard-000007.npz')
    """
    return f"shard-{number:06d}{suffix}"


def write_index(folder: Path, plan: str, index: ShardIndex) -> None:
    """Write the index of a shard whose tar file is complete. A shard that has an index is finished.

    Args:
        folder: The folder of the shards.
        plan: Checksum of the plan that the shard belongs to.
        index: The index.

    Raises:
        OSError: If the file cannot be written.
    """
    others = {"plan": plan, "names": index.names, "groups": index.groups, "unreadable": index.unreadable}
    about = index.summary._asdict() | others
    with atomic_binary_write(folder / shard_name(index.summary.number, ".npz")) as file:
        np.savez(file, rows=index.rows, about=np.frombuffer(json.dumps(about).encode(), np.uint8))


def read_index(folder: Path, number: int, plan: str) -> ShardIndex | None:
    """Read the index of a shard.

    Args:
        folder: The folder of the shards.
        number: Number of the shard.
        plan: Checksum of the plan that the shard must belong to.

    Returns:
        The index, or None if the shard is missing, damaged or of another plan.

    Raises:
        OSError: If a file cannot be read.
    """
    try:
        with (folder / shard_name(number, ".npz")).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            rows, about = arrays["rows"], json.loads(arrays["about"].tobytes())
        summary = _summary(number, about)
        unreadable = tuple((str(path), str(reason)) for path, reason in about["unreadable"])
        groups = None if about["groups"] is None else tuple(map(str, about["groups"]))
        is_complete = (
            (about["plan"], rows.dtype) == (plan, ROW)
            and rows.shape == (summary.images,)
            and (folder / shard_name(number)).stat().st_size == summary.num_bytes
        )
    except (FileNotFoundError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):  # missing or damaged
        return None
    if not is_complete:
        return None
    return ShardIndex(summary, rows, tuple(map(str, about["names"])), groups, unreadable)


@dataclass(frozen=True)
class Manifest:
    """What a finished folder of shards has."""

    class_names: tuple[str, ...]
    """Name of each class, in the order of the labels."""
    size: int
    """Height and width of the images in pixels."""
    channels: int
    """Number of channels. Grey images among images of three channels are repeated when they are read."""
    grouped: bool
    """Whether the images have groups."""
    repeated_rows: int
    """Number of rows of a table that repeat an earlier row, and are not among the images."""
    images: int
    """Number of images in all shards."""
    plan: str
    """Checksum of the plan that all shards belong to."""
    shards: tuple[ShardSummary, ...]
    """The shards, in the order of their numbers."""
    unreadable: tuple[tuple[str, str], ...]
    """Path and reason of each file that could not be read."""

    @property
    def checksum(self) -> str:
        """A hash of everything that determines the images, their labels and their order."""
        digest = hashlib.sha256(f"{FORMAT} {self.class_names} {self.size} {self.channels} {self.plan}".encode())
        for shard in self.shards:
            digest.update(f" {shard.number} {shard.images} {shard.sha256}".encode())
        return digest.hexdigest()

    def write(self, folder: Path) -> None:
        """Write the manifest to a folder of shards.

        Args:
            folder: The folder.

        Raises:
            OSError: If the file cannot be written.
        """
        shards = [shard._asdict() | {"file": shard_name(shard.number)} for shard in self.shards]
        unreadable = [{"path": path, "reason": reason} for path, reason in self.unreadable]
        values = {"format": FORMAT, "preparation": PREPARATION, **asdict(self), "shards": shards}
        with atomic_write(folder / MANIFEST) as file:
            json.dump(values | {"unreadable": unreadable}, file, indent=1)


def is_shard_folder(path: Path) -> bool:
    """Whether a folder holds finished shards.

    Args:
        path: Path of the folder. It need not exist.

    Returns:
        True if it has a manifest.
    """
    return path.is_dir() and (path / MANIFEST).is_file()


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a folder of shards.

    Args:
        folder: The folder.

    Returns:
        The manifest.

    Raises:
        ValueError: If it is damaged, or of another version.
        OSError: If it cannot be read.
    """
    values = read_json_object(folder / MANIFEST, MAX_MANIFEST_BYTES, "a manifest of shards")
    try:
        if values["format"] != FORMAT:
            raise ValueError(f"expected format {FORMAT}, got {values['format']!r}")
        manifest = Manifest(
            tuple(map(str, values["class_names"])),
            int(values["size"]),
            int(values["channels"]),
            bool(values["grouped"]),
            int(values["repeated_rows"]),
            int(values["images"]),
            str(values["plan"]),
            tuple(_summary(number, shard) for number, shard in enumerate(values["shards"])),
            tuple((str(entry["path"]), str(entry["reason"])) for entry in values["unreadable"]),
        )
        if manifest.images != sum(shard.images for shard in manifest.shards):
            raise ValueError(f"expected {manifest.images} images in all shards together")
        if min(manifest.size, manifest.channels, len(manifest.class_names) - 1) < 1:
            raise ValueError("expected a size, channels, and at least 2 classes")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"'{folder / MANIFEST}' is not a manifest of this version ({type(error).__name__}: {error}): write the "
            "shards again with 'tigranet data shard'"
        ) from None
    return manifest


def _summary(number: int, shard: Mapping[str, Any]) -> ShardSummary:
    """Read what was recorded about a shard, or raise an error of what is wrong with it."""
    if shard["number"] != number:
        raise ValueError(f"expected shard {number}, got {shard['number']!r}")
    return ShardSummary(
        number,
        int(shard["images"]),
        int(shard["num_bytes"]),
        str(shard["sha256"]),
        tuple(map(int, shard["channels"])),
    )
