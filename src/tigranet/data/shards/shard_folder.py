"""Open a folder of shards as labelled images."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tigranet.data.dataset import LabelledImages
from tigranet.data.shards.reader import ShardReader
from tigranet.data.shards.shard_files import PARTS, Manifest, read_manifest
from tigranet.data.shards.stored_images import StoredImages


class OpenShards(NamedTuple):
    """All images of a folder of shards, in the order of the source that they were made of."""

    manifest: Manifest
    images: LabelledImages
    """The images are read when they are indexed."""
    parts: tuple[str, ...]
    """'train', 'validation' or 'test'; '' if the source does not assign a part."""
    groups: tuple[str, ...] | None
    """Names of groups, if the shards were written with groups."""


def open_shards(folder: Path, size: int | None = None, color: bool = False, group: str | None = None) -> OpenShards:
    """Open a folder of shards. Only its manifest and indices are read.

    Args:
        folder: The folder.
        size: The expected side length of the images, or None for any.
        color: Whether colour images are expected. Grey images are repeated in three channels then, if there are images
            of three channels.
        group: Must be None: groups are chosen when shards are written.

    Returns:
        The images.

    Raises:
        ValueError: If the shards are damaged, or were written with other options.
        OSError: If they cannot be read.
    """
    manifest = read_manifest(folder)
    remedy = "write other shards with 'tigranet data shard'"
    if size not in (None, manifest.size):
        raise ValueError(f"the images in the shards '{folder}' have the size {manifest.size}, got {size}: {remedy}")
    if color and manifest.channels == 1:
        raise ValueError(f"the images in the shards '{folder}' are grey, so there are no colours to keep: {remedy}")
    if group is not None:
        raise ValueError(f"groups are stored in shards, got '{group}' for '{folder}': {remedy} --group '{group}'")
    reader = ShardReader(folder, manifest)
    everything = StoredImages(reader, np.arange(manifest.images), manifest.channels)
    parts = tuple(PARTS[part] for part in reader.rows["part"].tolist())
    return OpenShards(manifest, LabelledImages(everything, reader.labels), parts, reader.groups)
