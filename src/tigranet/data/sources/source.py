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


class LabelledBytes(NamedTuple):
    """Images of bytes with their labels. They need a quarter of the memory of :class:`LabelledImages`."""

    images: UInt8[Tensor, "count maps height width"]
    """Pixels from 0 to 255."""
    labels: Int[Tensor, " count"]
    """Position of the class of each image among the class names."""

    def take(self, indices: Int[Tensor, " selected"]) -> LabelledImages:
        """Select images and convert them to [0, 1].

        Args:
            indices: Positions of the images, in the order of the result.

        Returns:
            The selected images with their labels.
        """
        return LabelledImages(self.images[indices].float().div_(255), self.labels[indices])


class ImagePool(NamedTuple):
    """All images of a source."""

    images: LabelledImages | LabelledBytes
    """Images to draw from."""
    test_images: LabelledImages | LabelledBytes | None = None
    """Test images, if the source has a test set of its own."""
    objects: Int[Tensor, " count"] | None = None
    """Number of the object in each of ``images``, if there are several views of each object."""
    is_drawn: bool = False
    """Whether ``images`` are the published training, validation and test images, in this order and moved as published.
    They are then neither drawn at random nor moved again."""


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


def labelled_bytes(
    pixels: UInt8[np.ndarray, "count maps height width"], labels: Integer[np.ndarray, " count"]
) -> LabelledBytes:
    """Convert arrays to tensors. The pixels are not copied.

    Args:
        pixels: The images.
        labels: Label of each image.

    Returns:
        The images as bytes.
    """
    return LabelledBytes(torch.from_numpy(pixels), torch.from_numpy(labels.astype(np.int64)))
