"""The images of an .npz file one by one, without labels, for a network that is already trained."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Shaped

from tigranet.data.decode_budget import DECODE_BUDGET
from tigranet.data.image_arrays import check_channels_last
from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.image_index import PART_NAMES
from tigranet.data.letterbox import StoredImage, UnreadableFile, letterbox, letterbox_bytes
from tigranet.data.luminance import array_to_grey
from tigranet.data.npz_data import IMAGE_NAMES, NpzSource, find_max_values
from tigranet.data.npz_file import open_npz


@dataclass(frozen=True, eq=False)
class ArrayImage(StoredImage):
    """An image of an array.

    Args:
        name: What the image is called in results.
        pixels: Its pixels.
        max_value: What they are divided by to bring them to [0, 1].
    """

    name: Path
    pixels: Shaped[np.ndarray, "height width channels"]
    max_value: int

    @property
    def path(self) -> Path:
        """What the image is called in results."""
        return self.name

    @property
    def held_bytes(self) -> int:
        """Memory of the pixels."""
        return self.pixels.nbytes

    def square(self, size: int, color: bool) -> Float[np.ndarray, "size size channels"]:
        """Convert the image as for a training, and letterbox it.

        Args:
            size: Side length of the square in pixels.
            color: Keep all channels instead of the luminance.

        Returns:
            The square image.

        Raises:
            UnreadableImageError: If the image is too large, or has floating-point pixels that are not in [0, 1].
        """
        height, width, channels = self.pixels.shape
        num_bytes = 8 * height * width * channels + letterbox_bytes(height, width, channels, size)
        if num_bytes > DECODE_BUDGET.limit:
            raise UnreadableImageError(
                f"takes {num_bytes / 1e6:,.0f} MB of memory to convert, more than {DECODE_BUDGET.limit / 1e6:,.0f} MB"
            )
        with DECODE_BUDGET.reserve(num_bytes):
            with np.errstate(over="ignore"):
                pixels = self.pixels.astype(np.float32)
            if self.pixels.dtype.kind == "f":
                _check_range(pixels)
            pixels /= np.float32(self.max_value)
            return letterbox(pixels if color else array_to_grey(pixels), size)


def npz_images(path: Path) -> Iterator[ArrayImage | UnreadableFile]:
    """Read the images of an .npz file in blocks.

    The arrays are those of :func:`~tigranet.data.npz_data.read_npz_images`: ``images``, or another name in common use,
    or one such array for each part. Labels are not needed, and not read. Pixels are scaled as for a training.

    Args:
        path: Path of the file.

    Yields:
        The images, called by the path of the file, the name of the array and their position in it; or the file itself
        with the reason if it, or the rest of it, cannot be read.
    """
    try:
        with open_npz(path) as archive:
            source = NpzSource(path, archive)
            names = _image_arrays(path, source)
            integers = [name for name in names if source.header(name).dtype.kind in "iu"]
            whites = find_max_values(source, integers, [source.header(name) for name in integers])
            white_of = dict(zip(integers, whites, strict=True))
            for name in names:
                images = (pixels for block in source.blocks(name) for pixels in block)
                for position, pixels in enumerate(images):
                    yield ArrayImage(Path(f"{path}/{name}[{position}]"), pixels, white_of.get(name, 1))
    except (OSError, ValueError) as error:
        yield UnreadableFile(path, str(error).removeprefix(f"'{path}' "))


def _image_arrays(path: Path, source: NpzSource) -> list[str]:
    """Return the names of the arrays that hold images, after a check of their headers."""
    names = [name for name in IMAGE_NAMES if name in source][:1]
    if not names:
        in_parts = [f"{part}_{name}" for part in PART_NAMES for name in IMAGE_NAMES]
        in_parts += [f"{name}_{part}" for part in PART_NAMES for name in IMAGE_NAMES]
        names = [name for name in source if name in in_parts]
    if not names:
        raise ValueError(f"'{path}' has no array 'images', it has: {', '.join(source) or 'none'}")
    for name in names:
        shape, kind = source.header(name)
        if len(shape) not in (3, 4) or 0 in shape or kind.kind not in "iufb":
            raise ValueError(
                f"'{path}' has no images in the array '{name}': expected numbers of shape (n, H, W) or (n, H, W, C), "
                f"got {kind} {shape}"
            )
        check_channels_last(shape[1:], name)
    return names


def _check_range(pixels: np.ndarray) -> None:
    low, high = pixels.min(), pixels.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        raise UnreadableImageError("holds NaN or infinity")
    if low < 0 or high > 1:
        raise UnreadableImageError(
            f"has floating-point pixels from {low:g} to {high:g}, expected [0, 1]: divide the array by its maximum"
        )
