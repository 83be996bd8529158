"""Images in shards, as a tensor that reads images when it is indexed."""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.shards.reader import ShardReader
from tigranet.torch_compat import no_function_override, tensor_without_numbers


class StoredImages(Tensor):
    """Images that are not in memory: indexing along the first axis reads some of them as an ordinary tensor.

    Shape, type and device are those of a tensor with all images, so that functions of images in batches need not know
    where the images are. Everything else that would need all pixels at once raises a ``TypeError``.

    Args:
        reader: Reads images by their positions.
        positions: Positions of the images, in the order of this tensor.
        channels: Number of channels, see :meth:`ShardReader.read`.

    Shape:
        (count, channels, size, size) in float32 on the CPU.
    """

    __torch_function__ = no_function_override()

    @staticmethod
    def __new__(cls, reader: ShardReader, positions: np.ndarray, channels: int) -> "StoredImages":  # noqa: D102
        shape = (len(positions), channels, reader.manifest.size, reader.manifest.size)
        return tensor_without_numbers(cls, shape, torch.float32)

    def __init__(self, reader: ShardReader, positions: np.ndarray, channels: int) -> None:
        self.reader, self.positions, self.channels = reader, positions, channels
        self._ahead: tuple[bytes, Future[Tensor]] | None = None

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Refuse operations on all images at once.

        Args:
            function: The operation.
            types: Ignored.
            args: Ignored.
            kwargs: Ignored.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"{function} needs all images in memory, but they are in shards: select some of them first")

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"{type(self).__name__}(shape={tuple(self.shape)}, folder='{self.reader.folder}')"

    def __getitem__(self, index: Any) -> Tensor:
        if isinstance(index, tuple):
            raise TypeError(f"images in shards have one index, got {len(index)}: read some images first")
        if isinstance(index, int):
            return self.reader.read(self.positions[[index]], self.channels)[0]
        rows = index.cpu().numpy() if isinstance(index, Tensor) else index
        positions = self.positions[rows]
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == positions.tobytes():
            return ahead[1].result()
        return self.reader.read(positions, self.channels)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[row] for row in range(len(self)))

    def split(self, split_size: Any, dim: int = 0) -> Any:
        """Return batches that are read one after the other.

        Args:
            split_size: Number of images in a batch.
            dim: Must be 0.

        Returns:
            A sequence of batches, which are read again each time.

        Raises:
            TypeError: If ``dim`` is not 0.
        """
        if dim != 0:
            raise TypeError(f"images in shards can only be split along dimension 0, got {dim}")
        return _Batches(self, split_size)

    def select_rows(self, rows: Any) -> "StoredImages":
        """Select images without reading them.

        Args:
            rows: Their positions in this tensor, as integers in a tensor on the CPU or an array.

        Returns:
            The selected images, in shards too.
        """
        return StoredImages(self.reader, self.positions[np.asarray(rows)], self.channels)

    def in_three_channels(self) -> "StoredImages":
        """Return the same images, with grey ones repeated in red, green and blue."""
        return StoredImages(self.reader, self.positions, 3) if self.channels == 1 else self

    def read_ahead(self, rows: Tensor) -> None:
        """Begin to read images in the background. Indexing with the same rows, if it comes next, waits for them.

        Args:
            rows: Positions in this tensor.
        """
        positions = self.positions[rows.cpu().numpy()]
        self._ahead = positions.tobytes(), _background().submit(self.reader.read, positions, self.channels)

    def hashes(self, field: str) -> Iterator[int | None]:
        """Return the stored hash of each image, see :meth:`ShardReader.hashes`.

        Args:
            field: ``content`` or ``picture``.

        Returns:
            The hashes in the order of this tensor, with None where it is not stored.
        """
        return self.reader.hashes(self.positions, self.channels, field)

    @property
    def fingerprint(self) -> bytes:
        """A hash of the images and their order. Nothing is read."""
        digest = hashlib.sha256(f"{self.reader.manifest.checksum} {self.channels}".encode())
        digest.update(np.ascontiguousarray(self.positions).tobytes())
        return digest.digest()


class _Batches(Sequence[Float[Tensor, "batch maps height width"]]):
    """The batches of images in shards."""

    def __init__(self, images: StoredImages, size: int) -> None:
        self._images, self._size = images, size

    def __len__(self) -> int:
        return -(-len(self._images) // self._size)

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self):
            raise IndexError(f"there is no batch {number} among {len(self)}")
        return self._images[number * self._size : (number + 1) * self._size]


_pool: ThreadPoolExecutor | None = None


def _background() -> ThreadPoolExecutor:
    """Return the thread that reads ahead, which is started when it is first needed."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(1, "read-ahead")
    return _pool
