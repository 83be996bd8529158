"""One image file, of whatever kind, as an array in [0, 1]."""

from pathlib import Path

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageOps, UnidentifiedImageError

from tigranet.data.value_range import full_scale

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
LARGEST = 64_000_000
"""Pixels; a larger image is refused before it is unpacked."""
OF_FILES = (65535,)
"""What is white in wide whole numbers: one file does not know how bright the others are."""
LUMINANCE = np.array([0.299, 0.587, 0.114], dtype=np.float32)


class UnreadableImageError(ValueError):
    """A file that cannot be read as an image; the message is the reason alone."""


def read_image(path: Path, color: bool = False) -> Float[np.ndarray, "height width channels"]:
    """The image in a file: one channel, the luminance, or with ``color`` all of them.

    PNG, JPEG, BMP, GIF (the first frame) and WebP, turned as their EXIF says; TIFF of whole or floating-point numbers,
    with a palette or not, the pages of a file being its channels. Transparent pixels are black. Whole numbers are
    divided by :func:`full_scale`. Floating-point numbers are taken as they are in [0, 1], else scaled to it
    from their own range.
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
        raise UnreadableImageError(f"has more than {LARGEST:,} pixels") from None
    except UnidentifiedImageError:
        raise UnreadableImageError("not an image of a kind that is read here") from None
    except Exception as error:  # the decoders of a dozen formats raise what they like
        raise UnreadableImageError(f"cannot be decoded: {str(error) or type(error).__name__}".splitlines()[0]) from None
    if color or pixels.shape[2] == 1:
        return pixels
    return pixels[..., :3] @ LUMINANCE[:, None] if pixels.shape[2] == 3 else pixels.mean(2, keepdims=True)


def _is_tiff(path: Path) -> bool:
    """By what is in it: names are wrong at times."""
    with path.open("rb") as file:
        return file.read(4)[:3] in (b"II*", b"II+", b"MM\0")


def _read_pillow(path: Path, pages: int = 1) -> np.ndarray:
    with Image.open(path) as file:
        if file.width * file.height * pages > LARGEST:
            raise UnreadableImageError(f"has more than {LARGEST:,} pixels")
        found = []
        for page in range(pages):
            file.seek(page)
            found.append(_grey_or_rgb(ImageOps.exif_transpose(file)))
    return _in_unit_range(np.concatenate(found, axis=2))


def _grey_or_rgb(image: Image.Image) -> np.ndarray:
    """Whatever it is made of."""
    if image.mode == "1":
        image = image.convert("L")
    if image.mode not in ("L", "F") and not image.mode.startswith("I"):
        image = image.convert("RGBA")  # palettes and CMYK too
        image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), image).convert("RGB")
    pixels = np.asarray(image)
    return pixels if pixels.ndim == 3 else pixels[..., None]


def _read_tiff(path: Path) -> np.ndarray:
    import tifffile

    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        if np.prod(series.shape) > LARGEST * 4:
            raise UnreadableImageError(f"has {' x '.join(map(str, series.shape))} values, more than {4 * LARGEST:,}")
        axes, page, kind = series.axes, series.keyframe, tifffile.PHOTOMETRIC
        transparency = tuple(page.extrasamples)
        channels = {int(kind.MINISBLACK): 1, int(kind.MINISWHITE): 1, int(kind.RGB): 3}.get(page.photometric)
        try:
            pixels = series.asarray() if channels else None
        except ValueError:  # packed in a way that it has no decoder for, LZW among them
            pixels = None
        if pixels is None:  # or a palette, CMYK and their like
            return _read_pillow(path, len(series.pages))
        if page.photometric == kind.MINISWHITE and pixels.dtype.kind in "bu":
            pixels = ~pixels if pixels.dtype.kind == "b" else (2**page.bitspersample - 1) - pixels
    rows, columns = axes.index("Y"), axes.index("X")
    pixels = np.moveaxis(pixels, (rows, columns), (0, 1))
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if pixels.shape[2] - 1 == channels:
        if transparency == (tifffile.EXTRASAMPLE.ASSOCALPHA,):  # on black already
            return _in_unit_range(pixels[..., :channels])
        if transparency == (tifffile.EXTRASAMPLE.UNASSALPHA,):
            return _in_unit_range(pixels[..., :channels]) * _opaque(pixels[..., channels:])
    return _in_unit_range(pixels)


def _opaque(alpha: np.ndarray) -> np.ndarray:
    """How much is seen of each pixel; floating-point numbers go to 1 or, where some are above it, to the largest."""
    if alpha.dtype.kind in "iu":
        return _in_unit_range(alpha)
    alpha = _finite(alpha)
    return np.clip(alpha / max(np.float32(1), alpha.max()), 0, 1)


def _in_unit_range(pixels: np.ndarray) -> np.ndarray:
    if pixels.dtype.kind in "iu":
        try:
            over = full_scale(pixels.dtype, int(pixels.min()), int(pixels.max()), OF_FILES)
        except ValueError as error:
            raise UnreadableImageError(str(error)) from None
        return pixels.astype(np.float32) / np.float32(over)
    pixels = _finite(pixels)
    low, high = pixels.min(), pixels.max()
    return pixels if low >= 0 and high <= 1 else (pixels - low) / (high - low) if high > low else np.zeros_like(pixels)


def _finite(pixels: np.ndarray) -> np.ndarray:
    pixels = pixels.astype(np.float32)
    if not np.isfinite(pixels).all():
        raise UnreadableImageError("holds NaN or infinity")
    return pixels
