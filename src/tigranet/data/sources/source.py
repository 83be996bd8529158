"""A source of images, from which named data sets are drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int, Integer, UInt8
from torch import Tensor

from tigranet.data.dataset import LabelledImages


class ImagePool(NamedTuple):
    """All images of a source."""

    images: LabelledImages
    """Images to draw from."""
    test_images: LabelledImages | None = None
    """Test images, if the source has a test set of its own."""
    objects: Int[Tensor, " count"] | None = None
    """Number of the object in each of ``images``, if there are several views of each object."""


@dataclass(frozen=True)
class Source:
    """A collection of images on disk or in an installed package."""

    name: str
    """Name for messages and tables."""
    there: Callable[[Path], bool]
    """Whether the images are available in a data folder, or in this Python installation."""
    load_pool: Callable[[Path], ImagePool]
    """Read the images from a data folder."""


def labelled_grey(
    pixels: UInt8[np.ndarray, "count height width"], labels: Integer[np.ndarray, " count"]
) -> LabelledImages:
    """Convert grey images of bytes to [0, 1].

    Args:
        pixels: Grey images.
        labels: Label of each image.

    Returns:
        Images with one channel.
    """
    return LabelledImages(
        torch.from_numpy(pixels).unsqueeze(1).float() / 255, torch.from_numpy(labels.astype(np.int64))
    )
