"""Pictures of evidence maps: the image, and beside it the image with the evidence in colour."""

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor

FOR_COLOUR, AGAINST_COLOUR = (213, 94, 0), (0, 114, 178)
"""Orange for evidence for the class and blue for evidence against it, which colour-blind readers can tell apart."""
PICTURE_PIXELS = 224
"""Small images are enlarged by a whole factor to at most this side length."""
STRONG_QUANTILE = 0.99
"""Evidence at or above this quantile of the magnitudes has the full colour."""
OPACITY = 0.85
"""Opacity of the full colour."""
BASE_RANGE = (64, 224)
"""Grey levels of black and white below the colours. On pure black or white a colour would be hard to see."""
GAP_PIXELS = 8
"""Width of the white strip between the two halves."""


def draw_evidence(
    image: Float[Tensor, "maps height width"], evidence: Float[Tensor, "height width"]
) -> UInt8[np.ndarray, "rows columns 3"]:
    """Draw an image, and beside it the image with the evidence in colour, both enlarged.

    Args:
        image: The image with values in [0, 1]. Three channels are shown in colour, the mean of any other number of
            channels in grey.
        evidence: The evidence map of the image.

    Returns:
        The picture. Each half rotates exactly with image and evidence under quarter turns.
    """
    factor = max(1, PICTURE_PIXELS // max(evidence.shape))
    plain = np.rint(255 * _colour_pixels(image)).astype(np.uint8)
    halves = [half.repeat(factor, 0).repeat(factor, 1) for half in (plain, overlay_evidence(image, evidence))]
    gap = np.full((halves[0].shape[0], GAP_PIXELS, 3), 255, dtype=np.uint8)
    return np.concatenate([halves[0], gap, halves[1]], axis=1)


def overlay_evidence(
    image: Float[Tensor, "maps height width"], evidence: Float[Tensor, "height width"]
) -> UInt8[np.ndarray, "height width 3"]:
    """Draw an image in grey, with the evidence for a class in orange and against it in blue.

    The colours are scaled to the map: full at the :data:`STRONG_QUANTILE` of its magnitudes.

    Args:
        image: The image, as for :func:`draw_evidence`.
        evidence: The evidence map of the image.

    Returns:
        The picture, in the size of the image.
    """
    values = evidence.double().cpu().numpy()
    low, high = BASE_RANGE
    base = low + (high - low) * _colour_pixels(image).mean(2, keepdims=True)
    magnitudes = np.abs(values)
    strong = np.quantile(magnitudes, STRONG_QUANTILE) or magnitudes.max() or 1.0
    opacity = OPACITY * np.minimum(magnitudes / strong, 1)[..., None]
    colour = np.where((values > 0)[..., None], FOR_COLOUR, AGAINST_COLOUR)
    return np.rint((1 - opacity) * base + opacity * colour).astype(np.uint8)


def _colour_pixels(image: Tensor) -> np.ndarray:
    """Return an image as numbers (height, width, 3) in [0, 1]."""
    channels = image if len(image) == 3 else image.mean(0, keepdim=True).expand(3, -1, -1)
    return np.asarray(channels.clamp(0, 1).permute(1, 2, 0).double().cpu().numpy())
