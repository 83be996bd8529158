"""The architecture to train when the user names none, and the size of the images that suits an architecture."""

import math
from typing import NamedTuple

from tigranet.architecture import Architecture
from tigranet.data.letterbox import MAX_DEFAULT_SIZE

MAX_FULL_RESOLUTION_SIZE = 64
"""Largest side length in pixels that is chosen automatically for networks that keep the resolution of the image in all
layers. Their time and memory grow with every pixel in every layer."""


class PresetRange(NamedTuple):
    """A preset, and the data that it is the default for."""

    preset: str
    """Name of the preset."""
    max_images: float = math.inf
    """Largest number of training images."""
    max_side: float = math.inf
    """Largest side length of the images in pixels."""


CPU_PRESETS = (
    PresetRange("oriented-small", max_side=7),  # too small to be coarsened twice
    PresetRange("pyramid-tiny", max_images=10_000, max_side=40),
    PresetRange("oriented", max_side=40),
    PresetRange("pyramid-small"),
)
"""The defaults on a CPU: the most accurate networks that learn from some hundred images in a minute or two. The default
is the first row whose two limits are kept. The last row has no limits."""
GPU_PRESETS = (
    PresetRange("oriented-small", max_side=7),
    PresetRange("pyramid-large", max_side=64),
    PresetRange("pyramid"),
)
"""The defaults on a GPU. These networks are more accurate, and take a hundred times as long on a CPU."""


def choose_preset(train_images: int, image_side: int, gpu: bool) -> str:
    """Return the name of the preset to train when the user names no architecture.

    ``results/README.md`` has the accuracies and the times that the choice is based on.

    Args:
        train_images: The number of training images.
        image_side: The longer side of the images in pixels.
        gpu: Whether the network is trained on a GPU.

    Returns:
        The preset of the first row of :data:`CPU_PRESETS` or :data:`GPU_PRESETS` whose limits are kept.

    Example:
        >>> choose_preset(300, 28, gpu=False), choose_preset(300, 64, gpu=False), choose_preset(300, 64, gpu=True)
        ('pyramid-tiny', 'pyramid-small', 'pyramid-large')
    """
    rows = GPU_PRESETS if gpu else CPU_PRESETS
    return next(row.preset for row in rows if train_images <= row.max_images and image_side <= row.max_side)


def choose_architecture(train_images: int, image_side: int, gpu: bool) -> Architecture:
    """Return the architecture to train when the user names none.

    Args:
        train_images: The number of training images.
        image_side: The longer side of the images in pixels.
        gpu: Whether the network is trained on a GPU.

    Returns:
        The architecture of :func:`choose_preset`.

    Example:
        >>> choose_architecture(300, 28, gpu=False) == Architecture.parse("pyramid-tiny")
        True
    """
    return Architecture.parse(choose_preset(train_images, image_side, gpu))


def default_size_limit(architecture: Architecture | None) -> int:
    """Return the largest side length to which a user's images are scaled when the user gives no size.

    Args:
        architecture: The architecture that the user names, or None if it is chosen after the images are loaded.

    Returns:
        :data:`~tigranet.data.letterbox.MAX_DEFAULT_SIZE`, but at most :data:`MAX_FULL_RESOLUTION_SIZE` for a named
        architecture that never reduces the resolution.

    Example:
        >>> default_size_limit(Architecture.parse("oriented"))
        64
    """
    if architecture is None or architecture.num_coarsenings:
        return MAX_DEFAULT_SIZE
    return min(MAX_DEFAULT_SIZE, MAX_FULL_RESOLUTION_SIZE)
