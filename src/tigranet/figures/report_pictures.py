"""Small pictures inside the report page: thumbnails, evidence, and an image at many angles."""

import base64
import io
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from tigranet.data.augment.rigid import Padding
from tigranet.evaluation.curves import rotate_all
from tigranet.figures.evidence_overlay import overlay_evidence

MAX_PICTURE_PIXELS = 96
"""Larger images are scaled down to this side length, so that the size of the page does not depend on theirs."""
MAX_PNG_BYTES = 4096
"""A PNG that takes more bytes per picture is replaced by a JPEG if that is smaller."""
JPEG_QUALITY = 88
"""Quality of these JPEGs, at which a thumbnail shows no artefacts."""


def thumbnail_uri(image: Float[Tensor, "maps height width"]) -> str:
    """Encode a small version of an image as a ``data:`` URI.

    Args:
        image: Image with values in [0, 1]. Three channels are shown in colour; the mean of any other number of
            channels is shown in grey.

    Returns:
        The URI of a PNG or JPEG of at most :data:`MAX_PICTURE_PIXELS` on each side.
    """
    return _encode(_levels(_shrink(image)), MAX_PNG_BYTES)


def evidence_uri(
    image: Float[Tensor, "maps height width"], evidence: Float[Tensor, "height width"] | None
) -> str | None:
    """Encode a picture of the evidence for a prediction, if there is any, as a ``data:`` URI.

    Args:
        image: The image.
        evidence: Its evidence map, or None.

    Returns:
        The URI, or None.
    """
    if evidence is None:
        return None
    return thumbnail_uri(torch.from_numpy(overlay_evidence(image, evidence)).permute(2, 0, 1) / 255)


def turned_uri(image: Float[Tensor, "maps height width"], angles: Sequence[int], padding: Padding) -> str:
    """Encode an image at several angles, as the network reads it, as one picture with one square below the other.

    Args:
        image: The image.
        angles: Angles in degrees.
        padding: What enters from outside the image.

    Returns:
        The URI.
    """
    tiles = [_levels(_square(_shrink(rotate_all(image[None], float(angle), padding)[0]))) for angle in angles]
    return _encode(np.concatenate(tiles), MAX_PNG_BYTES * len(tiles))


def _shrink(image: Tensor) -> Tensor:
    """Return a large image in a smaller size, with the mean over the pixels that become one."""
    height, width = image.shape[1:]
    factor = MAX_PICTURE_PIXELS / max(height, width)
    if factor >= 1:
        return image
    size = (max(1, round(factor * height)), max(1, round(factor * width)))
    return F.interpolate(image[None], size, mode="area")[0]


def _square(image: Tensor) -> Tensor:
    """Centre an image on a black square, so that it has the same size at every angle."""
    height, width = image.shape[1:]
    across, down = max(0, height - width), max(0, width - height)
    return F.pad(image, (across // 2, across - across // 2, down // 2, down - down // 2))


def _levels(image: Tensor) -> np.ndarray:
    """Return the grey levels (height, width), or the colours (height, width, 3), as bytes."""
    pixels = image if len(image) == 3 else image.mean(0, keepdim=True)
    levels = np.rint(pixels.nan_to_num().clamp(0, 1).permute(1, 2, 0).cpu().numpy() * 255).astype(np.uint8)
    return levels if levels.shape[-1] == 3 else levels[..., 0]


def _encode(levels: np.ndarray, max_png_bytes: int) -> str:
    picture = Image.fromarray(levels)
    png = io.BytesIO()
    picture.save(png, format="png", optimize=True)
    kind, content = "png", png.getvalue()
    if len(content) > max_png_bytes:
        jpeg = io.BytesIO()
        picture.save(jpeg, format="jpeg", quality=JPEG_QUALITY)
        kind, content = min((kind, content), ("jpeg", jpeg.getvalue()), key=lambda entry: len(entry[1]))
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
