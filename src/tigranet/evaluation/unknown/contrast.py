"""Blank frames: images with much less contrast than all images of known classes."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.layers.disc_window import window_images
from tigranet.model import TIGraNet

LOWEST_FRACTION = 0.5
"""An image is blank if its contrast is below this fraction of the lowest contrast of known images."""
NO_CONTRAST = 1e-9
"""Contrast of an image of one colour. Rounding errors are smaller."""


def image_contrast(net: TIGraNet, images: Float[Tensor, "batch maps height width"]) -> Float[Tensor, " batch"]:
    """Return the standard deviation of the pixels of each image, in the channel that varies most.

    Args:
        net: The network. If it shows itself a disc of each image, only what lies inside the disc counts.
        images: The images.

    Returns:
        The contrasts, in double precision on the CPU.
    """
    pixels = images.detach().cpu().double()
    if net.window == "disc":
        pixels = window_images(pixels)
    return pixels.flatten(2).std(2, correction=0).amax(1).clamp(min=NO_CONTRAST)


@dataclass(frozen=True)
class ContrastRange:
    r"""The contrasts of images of known classes.

    Features of a network need not tell a blank frame from a smooth surface: statistics of maps that are constant inside
    a disc vary as much as those of many images. The contrast c of the image itself does. The novelty of an image is

    .. math:: \nu(x) = \frac{\log c_{1/2} - \log c(x)}{\log c_{1/2} - \log (c_{\min} / 2)}

    with the median and the minimum of the contrasts of known images: 1 for half of the lowest contrast. If one of the
    known images is blank, blank images are not unknown.

    Args:
        median: The median :math:`c_{1/2}`.
        lowest: The minimum :math:`c_{\min}`.

    Example:
        >>> ContrastRange(0.5, 0.25).novelty(torch.tensor([0.5, 0.125, 0.03125])).round().tolist()
        [0.0, 1.0, 2.0]
    """

    median: float
    lowest: float

    @classmethod
    def measure(cls, contrasts: Float[Tensor, " count"]) -> "ContrastRange":
        """Measure the range.

        Args:
            contrasts: The contrasts of images of known classes, at least one.

        Returns:
            The range.
        """
        return cls(float(contrasts.median()), float(contrasts.amin()))

    def novelty(self, contrasts: Float[Tensor, " count"]) -> Float[Tensor, " count"]:
        """Return how little contrast images have: above 1 they are blank.

        Args:
            contrasts: Their contrasts.

        Returns:
            One number per image.
        """
        contrasts = contrasts.double().clamp(min=NO_CONTRAST)
        if self.lowest <= NO_CONTRAST:
            return torch.zeros_like(contrasts)
        unit = math.log(self.median) - math.log(LOWEST_FRACTION * self.lowest)
        return (math.log(self.median) - contrasts.log()) / unit
