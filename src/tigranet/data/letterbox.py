"""Bring images of any shape to one square size, and read many files at once."""

import io
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.image_io import open_pixels, read_image_size
from tigranet.data.pixel_rows import PixelRows, unit_strips
from tigranet.data.system_failures import is_system_failure

MAX_DEFAULT_SIZE = 64
"""Largest side length in pixels that is chosen automatically, unless the caller gives another limit."""
SizeLimit = int | Callable[[int], int]
"""Largest side length in pixels that is chosen automatically, which may depend on the number of images."""
MAX_PLANE_BYTES = 2**27
"""Memory for the channels of a large image that are resized at once, unless a single channel takes more."""
SLOW_IMAGES = 4
"""Number of images in a row that take long before threads are used. The first image alone may load a decoder."""
MAX_HELD_BYTES = 2**26
"""Pixels of images in memory that are read ahead, unless a single image takes more."""


class UnreadableFile(NamedTuple):
    """A file that was skipped, and the reason."""

    path: Path
    reason: str


class TemporarilyUnreadableFile(UnreadableFile):
    """A file that the system did not give access to. Another attempt may succeed."""


class StoredImage(ABC):
    """An image that is not a file of its own, such as a member of an archive or a row of an array."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """What the image is called in results."""

    @property
    def held_bytes(self) -> int:
        """Memory that the image takes before it is converted."""
        return 0

    @abstractmethod
    def square(self, size: int, color: bool) -> Float[np.ndarray, "size size channels"]:
        """Convert the image to [0, 1] and letterbox it. Several threads convert images at once.

        Args:
            size: Side length of the square in pixels.
            color: Keep all channels instead of the luminance.

        Returns:
            The square image.

        Raises:
            UnreadableImageError: If the image cannot be used.
        """


ImageItem = Path | StoredImage | UnreadableFile
"""An image to read: a file, an image stored elsewhere, or what is already known to be unreadable."""


def letterbox(image: Float[np.ndarray, "height width channels"], size: int) -> Float[np.ndarray, "size size channels"]:
    """Resize an image to fit a square, keeping its aspect ratio, and pad it.

    The longer side becomes ``size``. The shorter side becomes a number of pixels that leaves equal margins on both
    sides, which are filled with the median of the border of the image, per channel. So an image and its quarter turns
    give the same square up to a rotation and to rounding. An image of the requested size is returned unchanged.

    Args:
        image: The image.
        size: Side length of the square in pixels.

    Returns:
        The square image.
    """
    height, width, channels = image.shape
    if (height, width) == (size, size):
        return image
    planes = (Image.fromarray(np.ascontiguousarray(image[..., channel])) for channel in range(channels))
    return _pad(np.stack([_resized(plane, size) for plane in planes], axis=-1), size)


def letterbox_pixels(pixels: PixelRows, size: int, color: bool) -> Float[np.ndarray, "size size channels"]:
    """Convert decoded pixels to [0, 1] and letterbox them, with few copies of a large image.

    The result is that of :func:`letterbox`, bit by bit.

    Args:
        pixels: The image.
        size: Side length of the square in pixels.
        color: Keep all channels instead of the luminance.

    Returns:
        The square image.

    Raises:
        UnreadableImageError: If the pixels cannot be converted.
    """
    height, width = pixels.height, pixels.width
    if pixels.rows_per_strip >= height or (height, width) == (size, size):
        return letterbox(np.concatenate(list(unit_strips(pixels, color))), size)
    channels, group = pixels.channels if color else 1, _planes_at_once(height, width)
    resized: list[np.ndarray] = []
    for first in range(0, channels, group):
        selection = slice(first, min(first + group, channels))
        planes = [Image.new("F", (width, height)) for _ in range(selection.stop - first)]
        top = 0
        for strip in unit_strips(pixels, color, selection if color else slice(None)):
            for channel, plane in enumerate(planes):
                plane.paste(Image.fromarray(np.ascontiguousarray(strip[..., channel])), (0, top))
            top += len(strip)
        resized += [_resized(plane, size) for plane in planes]
    return _pad(np.stack(resized, axis=-1), size)


def letterbox_bytes(height: int, width: int, channels: int, size: int) -> int:
    """Estimate the memory that :func:`letterbox_pixels` takes besides a strip.

    Args:
        height: Number of rows of the image.
        width: Number of columns of the image.
        channels: Number of channels.
        size: Side length of the square in pixels.

    Returns:
        An upper limit in bytes: the planes that are resized at once, Pillow's tables of weights with 16 bytes per
        pixel of each side, and the result.
    """
    planes = min(_planes_at_once(height, width), max(1, channels))
    return 4 * planes * height * width + 16 * (height + width) + 8 * size**2 * max(1, channels)


def _planes_at_once(height: int, width: int) -> int:
    """Return the number of channels of a large image that are resized at once."""
    return max(1, MAX_PLANE_BYTES // max(1, 4 * height * width))


def _resized(plane: Image.Image, size: int) -> np.ndarray:
    """Resize one channel so that its longer side becomes ``size``, and equal margins are left along the other side."""
    scale = size / max(plane.size)
    margins = (min(round((size - side * scale) / 2), (size - 1) // 2) for side in plane.size)
    columns, rows = (size - 2 * margin for margin in margins)
    return np.asarray(plane.resize((columns, rows), Image.Resampling.BILINEAR))


def _pad(image: np.ndarray, size: int) -> np.ndarray:
    """Put an image with equal margins on opposite sides into a square of the median of its border."""
    rows, columns, _ = image.shape
    border = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
    square = np.tile(np.median(border, axis=0).astype(np.float32), (size, size, 1))
    top, left = (size - rows) // 2, (size - columns) // 2
    square[top : top + rows, left : left + columns] = image
    return square


def read_square(file: Path | io.BytesIO, size: int, color: bool) -> Float[np.ndarray, "size size channels"]:
    """Decode an image file and letterbox it.

    Args:
        file: Path of the file, or the content of a file in memory.
        size: Side length of the square in pixels.
        color: Keep all channels instead of the luminance.

    Returns:
        The square image, in [0, 1].

    Raises:
        UnreadableImageError: If the file cannot be read as an image, or decoding it takes too much memory.
    """
    with open_pixels(file, partial(letterbox_bytes, size=size)) as pixels:
        return letterbox_pixels(pixels, size, color)


def read_letterboxed(
    images: Iterable[ImageItem],
    size: int,
    color: bool,
    workers: int = 4,
    window: int = 256,
    min_threaded_seconds: float = 0.0,
) -> Iterator[tuple[Path, Float[Tensor, "channels size size"] | UnreadableFile]]:
    """Read images in parallel and bring each to one square size.

    Args:
        images: Paths of files, and images that are stored elsewhere. What is already known to be unreadable is passed
            on.
        size: Side length of the images in pixels.
        color: Keep all channels instead of the luminance.
        workers: Number of threads. With 0, each image is read when it is asked for. This is fastest where all cores are
            busy anyway, because threads that decode small images mostly wait for Python's global lock.
        window: Number of images that are read ahead, fewer if they take much memory.
        min_threaded_seconds: No threads are used until several images in a row have taken this long.

    Yields:
        For each image, in order, its path with the image in [0, 1], or with the reason why it cannot be read.
    """

    def read(image: ImageItem) -> tuple[Path, Tensor | UnreadableFile]:
        if isinstance(image, UnreadableFile):
            return image.path, image
        path = image if isinstance(image, Path) else image.path
        try:
            square = read_square(image, size, color) if isinstance(image, Path) else image.square(size, color)
        except UnreadableImageError as error:
            kind = TemporarilyUnreadableFile if is_system_failure(error) else UnreadableFile
            return path, kind(path, str(error))
        return path, torch.from_numpy(np.ascontiguousarray(square.transpose(2, 0, 1)))

    images = iter(images)
    num_slow = 0 if workers and min_threaded_seconds else SLOW_IMAGES
    while num_slow < SLOW_IMAGES and (next_image := next(images, None)) is not None:
        start = perf_counter()
        read_image = read(next_image)
        num_slow = num_slow + 1 if perf_counter() - start >= min_threaded_seconds else 0
        yield read_image
    if workers == 0:
        yield from map(read, images)
        return
    ahead: deque[tuple[Future[tuple[Path, Tensor | UnreadableFile]], int]] = deque()
    held_bytes = 0
    with ThreadPoolExecutor(workers) as pool:
        try:
            for image in images:
                ahead.append((pool.submit(read, image), image.held_bytes if isinstance(image, StoredImage) else 0))
                held_bytes += ahead[-1][1]
                # One image is waited for when another is begun, so that threads read while the caller computes.
                while len(ahead) >= window or (ahead and held_bytes >= MAX_HELD_BYTES):
                    result, num_bytes = ahead.popleft()
                    held_bytes -= num_bytes
                    yield result.result()
            while ahead:
                yield ahead.popleft()[0].result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def default_size(sides: Sequence[int], max_size: SizeLimit = MAX_DEFAULT_SIZE, images: int | None = None) -> int:
    """Choose the common side length for images of different sizes.

    Args:
        sides: Longer side of each image, in pixels.
        max_size: Largest side length in pixels.
        images: Number of images, if it is not that of ``sides``.

    Returns:
        The median, at least 2 and at most ``max_size``, which is also the result for no images.
    """
    limit = max_size(len(sides) if images is None else images) if callable(max_size) else max_size
    return max(2, min(limit, round(median(sides)))) if sides else limit


def default_file_size(paths: Sequence[Path], max_size: SizeLimit = MAX_DEFAULT_SIZE) -> int:
    """Choose the common side length for image files, from the headers of about 1,000 of them.

    Args:
        paths: Paths of the files. Those that cannot be read do not count.
        max_size: Largest side length in pixels.

    Returns:
        The side length in pixels (see :func:`default_size`).
    """
    sides = []
    for path in paths[:: max(1, len(paths) // 1000)]:
        try:
            sides.append(max(read_image_size(path)))
        except UnreadableImageError:
            continue  # reported when the image itself is read
    return default_size(sides, max_size, len(paths))
