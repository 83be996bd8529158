"""Image files brought to one square size, many at a time."""

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

LARGEST_SIDE = 64


class UnreadableFile(NamedTuple):
    """A file that was left out, and why."""

    path: Path
    reason: str


def letterbox(image: Float[np.ndarray, "height width channels"], size: int) -> Float[np.ndarray, "size size channels"]:
    """The image on a square of ``size``: scaled so that its longer side fits, in the middle, around it the median of
    its border. An image of that size is left as it is."""
    height, width, channels = image.shape
    if (height, width) == (size, size):
        return image
    scale = size / max(height, width)
    rows, columns = max(1, round(height * scale)), max(1, round(width * scale))
    planes = [Image.fromarray(np.ascontiguousarray(image[..., channel])) for channel in range(channels)]
    scaled = [np.asarray(plane.resize((columns, rows), Image.Resampling.BILINEAR)) for plane in planes]
    small = np.stack(scaled, axis=-1)
    border = np.concatenate([small[0], small[-1], small[:, 0], small[:, -1]])
    square = np.tile(np.median(border, axis=0).astype(np.float32), (size, size, 1))
    top, left = (size - rows) // 2, (size - columns) // 2
    square[top : top + rows, left : left + columns] = small
    return square


def read_letterboxed(
    paths: Iterable[Path], size: int, color: bool, workers: int = 4, window: int = 256
) -> Iterator[tuple[Path, Float[Tensor, "channels size size"] | UnreadableFile]]:
    """Each file with its image, or the reason why there is none: in order, read in parallel, ``window`` at a time."""

    def read(path: Path) -> tuple[Path, Tensor | UnreadableFile]:
        try:
            image = letterbox(read_image(path, color), size)
        except UnreadableImageError as error:
            return path, UnreadableFile(path, str(error))
        return path, torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).contiguous()

    remaining = iter(paths)
    with ThreadPoolExecutor(workers) as pool:
        while chunk := list(islice(remaining, window)):
            yield from pool.map(read, chunk)


def usual_size(paths: Sequence[Path]) -> int:
    """The median of the longer sides, at most 64, by the headers of at most 1,000 files."""
    sides = []
    for path in paths[:: max(1, len(paths) // 1000)]:
        try:
            with Image.open(path) as image:
                sides.append(max(image.size))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            continue  # it will be read, and reported, later
    return max(2, min(LARGEST_SIDE, round(median(sides)))) if sides else LARGEST_SIDE
