"""Bring images of any shape to one square size, and read many files at once."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from tigranet.data.image_io import UnreadableImageError, read_image
from tigranet.data.system_failures import is_system_failure

MAX_DEFAULT_SIZE = 64
"""Largest side length in pixels that is chosen automatically."""


class UnreadableFile(NamedTuple):
    """A file that was skipped, and the reason."""

    path: Path
    reason: str


class TemporarilyUnreadableFile(UnreadableFile):
    """A file that the system did not give access to. Another attempt may succeed."""


def letterbox(image: Float[np.ndarray, "height width channels"], size: int) -> Float[np.ndarray, "size size channels"]:
    """Resize an image to fit a square, keeping its aspect ratio, and pad it.

    The longer side becomes ``size``. The image is centred, and the rest is filled with the median of its border, per
    channel. An image of the requested size is returned unchanged.

    Args:
        image: The image.
        size: Side length of the square in pixels.

    Returns:
        The square image.
    """
    height, width, channels = image.shape
    if (height, width) == (size, size):
        return image
    scale = size / max(height, width)
    rows, columns = max(1, round(height * scale)), max(1, round(width * scale))
    planes = [Image.fromarray(np.ascontiguousarray(image[..., channel])) for channel in range(channels)]
    resized_planes = [np.asarray(plane.resize((columns, rows), Image.Resampling.BILINEAR)) for plane in planes]
    resized = np.stack(resized_planes, axis=-1)
    border = np.concatenate([resized[0], resized[-1], resized[:, 0], resized[:, -1]])
    square = np.tile(np.median(border, axis=0).astype(np.float32), (size, size, 1))
    top, left = (size - rows) // 2, (size - columns) // 2
    square[top : top + rows, left : left + columns] = resized
    return square


def read_letterboxed(
    paths: Iterable[Path | UnreadableFile], size: int, color: bool, workers: int = 4, window: int = 256
) -> Iterator[tuple[Path, Float[Tensor, "channels size size"] | UnreadableFile]]:
    """Read image files in parallel and bring each to one square size.

    Args:
        paths: Paths of the files. A file that is already known to be unreadable is passed on.
        size: Side length of the images in pixels.
        color: Keep all channels instead of the luminance.
        workers: Number of threads.
        window: Number of files that are read ahead.

    Yields:
        For each file, in order, its path with the image in [0, 1], or with the reason why it cannot be read.
    """

    def read(path: Path | UnreadableFile) -> tuple[Path, Tensor | UnreadableFile]:
        if isinstance(path, UnreadableFile):
            return path.path, path
        try:
            image = letterbox(read_image(path, color), size)
        except UnreadableImageError as error:
            kind = TemporarilyUnreadableFile if is_system_failure(error) else UnreadableFile
            return path, kind(path, str(error))
        return path, torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).contiguous()

    remaining = iter(paths)
    with ThreadPoolExecutor(workers) as pool:
        while chunk := list(islice(remaining, window)):
            yield from pool.map(read, chunk)


def default_size(sides: Sequence[int]) -> int:
    """Choose the common side length for images of different sizes.

    Args:
        sides: Longer side of each image, in pixels.

    Returns:
        The median, at least 2 and at most ``MAX_DEFAULT_SIZE``, which is also the result for no images.
    """
    return max(2, min(MAX_DEFAULT_SIZE, round(median(sides)))) if sides else MAX_DEFAULT_SIZE


def default_file_size(paths: Sequence[Path]) -> int:
    """Choose the common side length for image files, from the headers of about 1,000 of them.

    Args:
        paths: Paths of the files. Those that cannot be read do not count.

    Returns:
        The side length in pixels (see :func:`default_size`).
    """
    sides = []
    for path in paths[:: max(1, len(paths) // 1000)]:
        try:
            with Image.open(path) as image:
                sides.append(max(image.size))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            continue  # reported when the image itself is read
    return default_size(sides)
