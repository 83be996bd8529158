"""What must hold for ``read_image`` and any bytes, and the valid files from which mutations start."""

import io
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image

from fuzz.budget import check_message
from tigranet.data.image_io import UnreadableImageError, read_image

REGRESSIONS = Path(__file__).parent / "regressions"
"""Files on which an earlier version failed. Every file in this folder is checked in ``make test``."""
_FOLDER = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())


def check_image(content: bytes) -> None:
    """Check that bytes are read as an image or refused with a reason."""
    path = _FOLDER / f"tigranet-fuzz-{os.getpid()}.png"
    path.write_bytes(content)
    try:
        for color in (False, True):
            _check_file(path, color)
    finally:
        path.unlink()


def _check_file(path: Path, color: bool) -> None:
    with warnings.catch_warnings(record=True) as escaped:
        warnings.simplefilter("always")
        try:
            pixels = read_image(path, color)
        except UnreadableImageError as error:
            check_message(error)
            pixels = None
    assert not escaped, escaped[0]
    if pixels is None:
        return
    assert pixels.dtype == np.float32
    assert pixels.ndim == 3
    assert min(pixels.shape) >= 1, pixels.shape
    assert color or pixels.shape[2] == 1, pixels.shape
    assert np.isfinite(pixels).all()
    assert pixels.min() >= 0, pixels.min()
    assert pixels.max() <= 1 + 1e-6, pixels.max()


def seed_images() -> list[bytes]:
    """Return small valid files of every supported format, in its variants."""
    return [*_pillow_images(), *_tiff_images()]


def _pillow_images() -> list[bytes]:
    rng = np.random.default_rng(0)
    rgba = Image.fromarray(rng.integers(0, 256, (7, 5, 4), dtype=np.uint8))
    rgb, grey, palette = rgba.convert("RGB"), rgba.convert("L"), rgba.convert("RGB").quantize(8)
    deep = Image.fromarray(rng.integers(0, 65536, (7, 5)).astype(np.uint16))
    exif = Image.Exif()
    exif[0x0112] = 6  # the orientation: rotated by 90 degrees
    variants: list[tuple[Image.Image, str, dict[str, object]]] = [
        *((image, "PNG", {}) for image in (rgba, rgb, grey, palette, deep, grey.convert("1"))),
        (rgb, "PNG", {"exif": exif.tobytes()}),
        (rgb, "PNG", {"save_all": True, "append_images": [rgb.rotate(180)], "duration": 10}),
        (palette, "PNG", {"transparency": 0}),
        *((image, "JPEG", {}) for image in (rgb, grey, rgb.convert("CMYK"))),
        (rgb, "JPEG", {"progressive": True, "exif": exif.tobytes()}),
        *((image, "BMP", {}) for image in (rgba, rgb, grey, palette, grey.convert("1"))),
        (palette, "GIF", {}),
        (palette, "GIF", {"save_all": True, "append_images": [palette.rotate(180)], "transparency": 0}),
        (rgba, "WEBP", {}),
        (rgb, "WEBP", {"lossless": True, "exif": exif.tobytes()}),
        (rgb, "WEBP", {"save_all": True, "append_images": [rgb.rotate(180)]}),
        *((rgb, "TIFF", {"compression": name}) for name in ("tiff_lzw", "jpeg", "packbits", "tiff_adobe_deflate")),
        (grey.convert("1"), "TIFF", {"compression": "group4"}),
        (rgb.convert("CMYK"), "TIFF", {}),
        (palette, "TIFF", {}),
        (rgb.convert("YCbCr"), "TIFF", {}),
    ]
    return [_encoded(image, kind, options) for image, kind, options in variants]


def _encoded(image: Image.Image, kind: str, options: dict[str, object]) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _tiff_images() -> list[bytes]:
    rng = np.random.default_rng(0)
    variants: list[tuple[np.ndarray, dict[str, object]]] = [
        (rng.random((7, 5), np.float32), {}),
        (rng.random((7, 5)), {"compression": "zlib"}),
        (rng.random((7, 5)).astype(np.float16), {}),
        (rng.integers(0, 2**16, (7, 5)).astype(np.uint16), {"photometric": "miniswhite"}),
        (rng.integers(0, 2**15, (7, 5)).astype(np.int32), {"bigtiff": True}),
        (rng.integers(0, 256, (3, 7, 5)).astype(np.uint8), {"photometric": "minisblack"}),
        (rng.integers(0, 256, (3, 7, 5)).astype(np.uint8), {"photometric": "rgb", "planarconfig": "separate"}),
        (rng.integers(0, 256, (7, 5, 4)).astype(np.uint8), {"photometric": "rgb", "extrasamples": ["unassalpha"]}),
        (rng.integers(0, 256, (32, 32)).astype(np.uint8), {"tile": (16, 16)}),
        (rng.integers(0, 256, (2, 7, 5)).astype(np.uint8), {"ome": True}),
        (rng.integers(0, 256, (2, 7, 5)).astype(np.uint8), {"imagej": True}),
        (rng.integers(0, 2, (7, 5)).astype(bool), {}),
        (rng.random((7, 5)).astype(np.complex64), {}),
        (rng.integers(0, 256, (7, 5)).astype(np.uint8), {"byteorder": ">", "rowsperstrip": 2}),
    ]
    return [_encoded_tiff(pixels, options) for pixels, options in variants]


def _encoded_tiff(pixels: np.ndarray, options: dict[str, object]) -> bytes:
    file = io.BytesIO()
    byteorder = options.pop("byteorder", "<")
    big, imagej, ome = (bool(options.pop(name, False)) for name in ("bigtiff", "imagej", "ome"))
    with tifffile.TiffWriter(file, bigtiff=big, imagej=imagej, ome=ome, byteorder=byteorder) as writer:
        writer.write(pixels, **options)
    return file.getvalue()
