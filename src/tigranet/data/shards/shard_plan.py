"""The plan of a folder of shards: which images, how they are prepared, and which shard each of them is in.

The plan is written before the first shard. A command that continues compares its own plan with it, so that shards of
other images or other options are never mixed.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tigranet.atomic_files import atomic_write
from tigranet.data.image_index import ImageIndex
from tigranet.data.shards.shard_files import FORMAT
from tigranet.data.shards.writer import ShardImage
from tigranet.json_file import read_json_object

PLAN = "plan.json"
"""Name of the file."""
MAX_PLAN_BYTES = 1_000_000
"""Largest file."""
ORDER_SEED = 0
"""Seed of the order in which images are distributed over the shards."""


@dataclass(frozen=True)
class ShardPlan:
    """What determines the content of all shards."""

    format: int
    """Version of the format."""
    source: str
    """Absolute path of the folder or table."""
    size: int
    """Side length of the images in pixels."""
    color: bool
    """Whether all channels are kept."""
    group: str | None
    """How the group of an image is found, if groups are kept."""
    images_per_shard: int
    """Number of image files in a shard. The last one may have fewer."""
    images: int
    """Number of image files."""
    listing: str
    """Checksum of the names, labels, sizes and times of modification of the image files."""

    @property
    def shards(self) -> int:
        """Number of shards."""
        return -(-self.images // self.images_per_shard)

    @property
    def checksum(self) -> str:
        """A hash of the plan, which each index repeats."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Write the plan to the folder of the shards.

        Args:
            folder: The folder, which exists.

        Raises:
            OSError: If the file cannot be written.
        """
        with atomic_write(folder / PLAN) as file:
            json.dump(asdict(self), file, indent=1)

    def check_stored(self, folder: Path) -> None:
        """Check that the shards in a folder belong to this plan.

        Args:
            folder: A folder that has a plan.

        Raises:
            ValueError: If they belong to another plan. The message names the first difference.
            OSError: If the plan cannot be read.
        """
        stored = read_json_object(folder / PLAN, MAX_PLAN_BYTES, "a plan of shards")
        values = asdict(self)
        different = next((name for name in values if stored.get(name) != values[name]), None)
        if different is None:
            return
        remedy = "use another output folder, or delete this one to begin again"
        if different in ("listing", "images"):
            raise ValueError(f"the images in '{self.source}' have changed since '{folder}' was begun: {remedy}")
        raise ValueError(
            f"'{folder}' has shards with another {different.replace('_', ' ')}: {stored.get(different)!r}, and not "
            f"{values[different]!r}: {remedy}"
        )


def make_plan(
    source: Path, index: ImageIndex, *, size: int, color: bool, group: str | None, images_per_shard: int
) -> ShardPlan:
    """Return the plan for the images of a folder or a table.

    Args:
        source: The folder or table.
        index: Its images.
        size: Side length of the images in pixels.
        color: Keep all channels instead of the luminance.
        group: How the group of an image is found.
        images_per_shard: Number of image files in a shard.

    Returns:
        The plan.

    Raises:
        ValueError: If ``size`` or ``images_per_shard`` is not positive.
    """
    for name, value in (("size", size), ("images_per_shard", images_per_shard)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    digest = hashlib.sha256(json.dumps([index.class_names, index.groups]).encode())
    for path, label, part in zip(index.paths, index.labels, index.parts, strict=True):
        try:
            status = path.stat()
            times = f"{status.st_size} {status.st_mtime_ns}"
        except (OSError, ValueError):  # ValueError: a NUL in the path
            times = "missing"
        digest.update(f"{label} {part} {times} ".encode() + os.fsencode(path) + b"\0")
    return ShardPlan(
        FORMAT, os.path.abspath(source), size, color, group, images_per_shard, len(index.paths), digest.hexdigest()
    )


def shard_images(plan: ShardPlan, source: Path, index: ImageIndex) -> Iterator[tuple[int, list[ShardImage]]]:
    """Distribute the images over the shards, in a random order that is always the same.

    Every shard has images of all classes, so that programs that read whole shards and shuffle a few of them at a time
    see a good mixture.

    Args:
        plan: The plan.
        source: The folder or table.
        index: Its images.

    Yields:
        The number of each shard and its images.
    """
    root = source if source.is_dir() else source.parent
    order = np.random.default_rng(ORDER_SEED).permutation(plan.images)
    for number in range(plan.shards):
        positions = order[number * plan.images_per_shard :][: plan.images_per_shard].tolist()
        yield (
            number,
            [
                ShardImage(
                    position,
                    index.paths[position],
                    os.path.relpath(index.paths[position], root),
                    index.labels[position],
                    index.parts[position],
                    None if index.groups is None else index.groups[position],
                )
                for position in positions
            ],
        )
