"""The content of an image file that is already in memory, or that a store gives when it is asked for it."""

import io
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from numpy import ndarray

from tigranet.data.image_errors import UnreadableImageError, one_line
from tigranet.data.letterbox import StoredImage, read_square
from tigranet.data.packed_image import CONTENT_BUDGET, MAX_CONTENT_BYTES
from tigranet.remote_files import ABSENT, RemoteFiles


@dataclass(frozen=True)
class ImageContent(StoredImage):
    """The content of an image file, such as a row of a table or a member of a tar file.

    Args:
        name: What the image is called in results.
        content: The content of the file.
    """

    name: str
    content: bytes

    @property
    def path(self) -> Path:
        """What the image is called in results."""
        return Path(self.name)

    @property
    def held_bytes(self) -> int:
        """Memory that the image takes before it is converted."""
        return len(self.content)

    def square(self, size: int, color: bool) -> Float[ndarray, "size size channels"]:
        """Decode the image and letterbox it.

        Args:
            size: Side length of the square in pixels.
            color: Keep all channels instead of the luminance.

        Returns:
            The square image.

        Raises:
            UnreadableImageError: If the content cannot be read as an image.
        """
        if not self.content:
            raise UnreadableImageError("the file is empty")
        return read_square(io.BytesIO(self.content), size, color)


@dataclass(frozen=True)
class RemoteImage(StoredImage):
    """An image file in a store, which is read when it is converted.

    Args:
        url: The address of the file, which is also what the image is called in results.
    """

    url: str

    @property
    def path(self) -> Path:
        """What the image is called in results, as a path. It has one slash where the URL has two."""
        return Path(self.url)

    def square(self, size: int, color: bool) -> Float[ndarray, "size size channels"]:
        """Read the file, decode it and letterbox the image.

        Args:
            size: Side length of the square in pixels.
            color: Keep all channels instead of the luminance.

        Returns:
            The square image.

        Raises:
            UnreadableImageError: If there is no such file, if it may not be read, or if it is not an image.
            OSError: If the store cannot be reached. This says nothing about the image, so it is not a reason to skip
                it.
        """
        try:
            content = RemoteFiles(self.url).read(self.url)
        except ABSENT as error:
            reason = "no such file" if isinstance(error, FileNotFoundError) else one_line(str(error))
            raise UnreadableImageError(reason) from None
        if len(content) > MAX_CONTENT_BYTES:
            raise UnreadableImageError(f"has {len(content):,} bytes, more than {MAX_CONTENT_BYTES:,}")
        with CONTENT_BUDGET.reserve(len(content)):
            return ImageContent(self.url, content).square(size, color)
