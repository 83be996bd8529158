"""Read images from shards at known places, in any order, and check each of them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.data.image_hashes import content_hash
from tigranet.data.shards.shard_files import Manifest, read_index, shard_name

READING_THREADS = 4
"""Number of threads that read the images of a batch."""
READ_TOGETHER = 8
"""Number of images that a thread reads before it takes the next ones."""


class ShardReader:
    """Read images by their positions among all images of a folder of shards, in the order of the source.

    A file is open only while an image is read from it, so that there may be any number of shards, and any process or
    thread can read.

    Args:
        folder: The folder of the shards.
        manifest: Its manifest.

    Raises:
        ValueError: If an index is missing or damaged, or does not fit the manifest.
        OSError: If an index cannot be read.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        indices = [read_index(folder, shard.number, manifest.plan) for shard in manifest.shards]
        for expected, index in zip(manifest.shards, indices, strict=True):
            if index is None or index.summary != expected:
                raise ValueError(
                    f"'{folder / shard_name(expected.number)}' or its index is missing or damaged: delete both and "
                    "continue with the 'tigranet data shard' command that wrote them"
                )
        complete = [index for index in indices if index is not None]
        rows = np.concatenate([index.rows for index in complete])
        order = np.argsort(rows["position"], kind="stable")
        self.rows = rows[order]
        """What the indices say about each image."""
        self.shards = np.repeat(np.arange(len(complete), dtype=np.int32), [len(index.rows) for index in complete])[
            order
        ]
        """The shard of each image."""
        self.groups = (
            tuple(np.concatenate([np.asarray(index.groups, object) for index in complete])[order].tolist())
            if manifest.grouped
            else None
        )
        """The group of each image, if there are groups."""
        self._check_rows()

    def _check_rows(self) -> None:
        labels, channels = self.rows["label"], np.unique(self.rows["channels"])
        allowed = {1, 3} if self.manifest.channels == 3 else {self.manifest.channels}
        if (
            len(np.unique(self.rows["position"])) < len(self.rows)
            or not ((labels >= 0) & (labels < len(self.manifest.class_names))).all()
            or not np.isin(self.rows["bits"], (8, 32)).all()
            or not set(channels.tolist()) <= allowed
        ):
            raise ValueError(f"the indices in '{self.folder}' contradict its manifest: write the shards again")

    @property
    def labels(self) -> Int[Tensor, " images"]:
        """The label of each image."""
        return torch.from_numpy(self.rows["label"].astype(np.int64))

    def read(self, positions: Int[np.ndarray, " count"], channels: int) -> Float[Tensor, "count channels size size"]:
        """Read images.

        Args:
            positions: Their positions.
            channels: Number of channels of the result: that of the manifest, or 3 to repeat grey images.

        Returns:
            The pixels, the same numbers bit for bit as those that were stored.

        Raises:
            ValueError: If an image is damaged.
            OSError: If a shard cannot be read.
        """
        size = self.manifest.size
        images = np.empty((len(positions), channels, size, size), np.float32)  # PyTorch's modes belong to one thread
        parts = [range(first, len(positions))[:READ_TOGETHER] for first in range(0, len(positions), READ_TOGETHER)]

        def read_part(part: range) -> None:
            for place in part:
                images[place] = self._read_image(int(positions[place]))  # grey images are repeated

        if len(parts) <= 1:
            read_part(range(len(positions)))
        else:
            with ThreadPoolExecutor(min(READING_THREADS, len(parts))) as pool:
                list(pool.map(read_part, parts))  # the list raises the first error
        return torch.from_numpy(images)

    def _read_image(self, position: int) -> Float[np.ndarray, "channels size size"]:
        row, path = self.rows[position], self.folder / shard_name(int(self.shards[position]))
        shape = (int(row["channels"]), self.manifest.size, self.manifest.size)
        num_bytes = int(np.prod(shape)) * int(row["bits"]) // 8
        with open(path, "rb", buffering=0) as file:
            file.seek(int(row["offset"]))
            content = file.read(num_bytes)
        image = None
        if len(content) == num_bytes:
            numbers = np.frombuffer(content, np.uint8 if row["bits"] == 8 else "<f4").reshape(shape).astype(np.float32)
            image = numbers / np.float32(255) if row["bits"] == 8 else numbers
        if image is None or int(content_hash(torch.from_numpy(image)), 16) != row["content"]:
            raise ValueError(
                f"image {row['position']} in '{path}' is damaged: delete this file and its index, and continue with "
                "the 'tigranet data shard' command that wrote them"
            )
        return image

    def hashes(self, positions: Int[np.ndarray, " count"], channels: int, field: str) -> Iterator[int | None]:
        """Return the stored hashes of images.

        Args:
            positions: Positions of the images.
            channels: Number of channels that they are read with.
            field: ``content`` or ``picture``.

        Yields:
            The hash as a number, or None for a grey image that is repeated, whose hash is not stored.
        """
        for row in self.rows[positions]:
            yield int(row[field]) if row["channels"] == channels else None
