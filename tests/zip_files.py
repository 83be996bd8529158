"""Zip archives of small images for tests."""

import io
import zipfile

import numpy as np
from PIL import Image


def image_bytes(value: int = 100, mode: str = "L", size: tuple[int, int] = (8, 8)) -> bytes:
    """Return a PNG file of one grey value."""
    file = io.BytesIO()
    Image.fromarray(np.full(size, value, np.uint8)).convert(mode).save(file, "PNG")
    return file.getvalue()


def write_zip(path, members, compression=zipfile.ZIP_DEFLATED):
    """Write an archive. ``members`` are pairs of a name and a content, so that a name may occur twice."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name) if content is None else name, content or b"")
    return path
