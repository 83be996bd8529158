"""Decode one image file of any supported format to an array in [0, 1]."""

from pathlib import Path

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageOps, UnidentifiedImageError

from tigranet.data.luminance import array_to_grey
from tigranet.data.value_range import full_scale

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
MAX_PIXELS = 64_000_000
"""A larger image is refused before it is decompressed."""
WIDE_LIMITS = (65535,)
"""White in integers of 32 and 64 bits. One file does not tell how bright the others are, so there is only one value."""


class UnreadableImageError(ValueError):
    """A file cannot be read as an image. The message is the reason, without the name of the file."""


def read_image(path: Path, color: bool = False) -> Float[np.ndarray, "height width channels"]:
    """Read an image file.

    Supported are PNG, JPEG, BMP, GIF (first frame) and WebP, rotated as their EXIF orientation says, and TIFF with
    integers or floating-point numbers, with or without a palette. The pages of a TIFF file are its channels.
    Transparent pixels become black. Integers are divided by :func:`~tigranet.data.value_range.full_scale`.
    Floating-point numbers are used as they are if they lie in [0, 1], otherwise they are scaled from their range to
    [0, 1].

    Args:
        path: Path of the file. The format is detected from the content, not from the suffix.
        color: Return all channels instead of the luminance.

    Returns:
        The pixels as 32-bit floating-point numbers.

    Raises:
        UnreadableImageError: If the file cannot be opened or decoded, is too large, or holds NaN or infinity.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise UnreadableImageError(error.strerror or str(error)) from None
    if size == 0:
        raise UnreadableImageError("the file is empty")
    try:
        pixels = _read_tiff(path) if _is_tiff(path) else _read_pillow(path)
    except UnreadableImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise UnreadableImageError(f"has more than {MAX_PIXELS:,} pixels") from None
    except UnidentifiedImageError:
        raise UnreadableImageError("not an image of a kind that is read here") from None
    except Exception as error:  # every decoder has exceptions of its own
        raise UnreadableImageError(f"cannot be decoded: {str(error) or type(error).__name__}".splitlines()[0]) from None
    return pixels if color else array_to_grey(pixels)


def _is_tiff(path: Path) -> bool:
    """Whether the file starts like a TIFF. The suffix is not reliable."""
    with path.open("rb") as file:
        return file.read(4)[:3] in (b"II*", b"II+", b"MM\0")


def _read_pillow(path: Path, num_pages: int = 1) -> np.ndarray:
    with Image.open(path) as file:
        if file.width * file.height * num_pages > MAX_PIXELS:
            raise UnreadableImageError(f"has more than {MAX_PIXELS:,} pixels")
        pages = []
        for number in range(num_pages):
            file.seek(number)
            pages.append(_grey_or_rgb(ImageOps.exif_transpose(file)))
    return _to_unit_range(np.concatenate(pages, axis=2))


def _grey_or_rgb(image: Image.Image) -> np.ndarray:
    """Convert any mode of Pillow to an array with one or three channels, on a black background."""
    if image.mode == "1":
        image = image.convert("L")
    if image.mode not in ("L", "F") and not image.mode.startswith("I"):
        image = image.convert("RGBA")  # also from palettes and CMYK
        image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), image).convert("RGB")
    pixels = np.asarray(image)
    return pixels if pixels.ndim == 3 else pixels[..., None]


def _read_tiff(path: Path) -> np.ndarray:
    import tifffile

    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        if np.prod(series.shape) > MAX_PIXELS * 4:
            raise UnreadableImageError(f"has {' x '.join(map(str, series.shape))} values, more than {4 * MAX_PIXELS:,}")
        axes, page, photometric = series.axes, series.keyframe, tifffile.PHOTOMETRIC
        extra_samples = tuple(page.extrasamples)
        color_channels = {int(photometric.MINISBLACK): 1, int(photometric.MINISWHITE): 1, int(photometric.RGB): 3}.get(
            page.photometric
        )
        try:
            pixels = series.asarray() if color_channels else None
        except ValueError:  # tifffile has no decoder for some compressions, such as LZW
            pixels = None
        if pixels is None:  # Pillow also converts palettes and CMYK
            return _read_pillow(path, len(series.pages))
        if page.photometric == photometric.MINISWHITE and pixels.dtype.kind in "bu":
            pixels = ~pixels if pixels.dtype.kind == "b" else (2**page.bitspersample - 1) - pixels
    rows, columns = axes.index("Y"), axes.index("X")
    pixels = np.moveaxis(pixels, (rows, columns), (0, 1))
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if pixels.shape[2] - 1 == color_channels:
        if extra_samples == (tifffile.EXTRASAMPLE.ASSOCALPHA,):  # the colours are already multiplied by alpha
            return _to_unit_range(pixels[..., :color_channels])
        if extra_samples == (tifffile.EXTRASAMPLE.UNASSALPHA,):
            return _to_unit_range(pixels[..., :color_channels]) * _opacity(pixels[..., color_channels:])
    return _to_unit_range(pixels)


def _opacity(alpha: np.ndarray) -> np.ndarray:
    """Scale an alpha channel to [0, 1]. Floating-point values are divided by their maximum if it is above 1."""
    if alpha.dtype.kind in "iu":
        return _to_unit_range(alpha)
    alpha = _to_finite_floats(alpha)
    return np.clip(alpha / max(np.float32(1), alpha.max()), 0, 1)


def _to_unit_range(pixels: np.ndarray) -> np.ndarray:
    if pixels.dtype.kind in "iu":
        try:
            white = full_scale(pixels.dtype, int(pixels.min()), int(pixels.max()), WIDE_LIMITS)
        except ValueError as error:
            raise UnreadableImageError(str(error)) from None
        return pixels.astype(np.float32) / np.float32(white)
    pixels = _to_finite_floats(pixels)
    low, high = pixels.min(), pixels.max()
    return pixels if low >= 0 and high <= 1 else (pixels - low) / (high - low) if high > low else np.zeros_like(pixels)


def _to_finite_floats(pixels: np.ndarray) -> np.ndarray:
    pixels = pixels.astype(np.float32)
    if not np.isfinite(pixels).all():
        raise UnreadableImageError("holds NaN or infinity")
    return pixels
