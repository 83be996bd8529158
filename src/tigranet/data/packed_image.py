"""The content of an image file in memory: a member of an archive, or standard input."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from numpy import ndarray

from tigranet.data.decode_budget import ByteBudget
from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.letterbox import StoredImage, read_square

MAX_CONTENT_BYTES = 2**28
"""Largest size of an image file in memory, and of those of all threads together."""
CONTENT_BUDGET = ByteBudget(MAX_CONTENT_BYTES)
"""The budget of this process. A thread reserves its share before its share of the memory for decoding, never after."""


@dataclass(frozen=True)
class PackedImage(StoredImage):
    """An image file that is read into memory when it is converted.

    Args:
        name: What the image is called in results.
        num_bytes: Size of the file.
        read: Returns the content of the file. It raises ``UnreadableImageError`` if that is not possible.
    """

    name: Path
    num_bytes: int
    read: Callable[[], bytes]

    @property
    def path(self) -> Path:
        """What the image is called in results."""
        return self.name

    def square(self, size: int, color: bool) -> Float[ndarray, "size size channels"]:
        """Read the file, decode it and letterbox the image.

        Args:
            size: Side length of the square in pixels.
            color: Keep all channels instead of the luminance.

        Returns:
            The square image.

        Raises:
            UnreadableImageError: If the file is too large, or cannot be read as an image.
        """
        if self.num_bytes > MAX_CONTENT_BYTES:
            raise UnreadableImageError(
                f"has {self.num_bytes:,} bytes, more than {MAX_CONTENT_BYTES:,}: save it as a file of its own"
            )
        with CONTENT_BUDGET.reserve(self.num_bytes):
            return read_square(io.BytesIO(self.read()), size, color)
