"""Whether images have colours: a training keeps them by default, and images that are grey get one channel.

Many cameras and programs save grey images with three channels. Their channels are equal, or differ by the rounding of a
lossy format.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from tigranet.data.evenly_spaced import evenly_spaced
from tigranet.data.letterbox import UnreadableFile, read_letterboxed

MAX_EXAMINED_IMAGES = 64
"""Number of images that are examined."""
EXAMINED_SIDE = 32
"""Side length in pixels to which files are scaled for that."""
MIN_DIFFERENCE = 4 / 255
"""An image has colours if its channels differ by more than this on average, where 1 is white."""
MIN_SHARE = 0.1
"""Share of the examined images that must have colours."""


def has_colors(image: Float[Tensor, "channels height width"]) -> bool:
    """Return whether an image has colours.

    Args:
        image: Pixels in [0, 1].

    Returns:
        Whether there are three channels that differ: at an average pixel, the largest minus the smallest one is more
        than :data:`MIN_DIFFERENCE`.

    Example:
        >>> import torch
        >>> grey = torch.rand(1, 4, 4)
        >>> has_colors(grey), has_colors(grey.expand(3, 4, 4)), has_colors(torch.rand(3, 4, 4))
        (False, False, True)
    """
    return image.shape[0] == 3 and float((image.amax(0) - image.amin(0)).mean()) > MIN_DIFFERENCE


def have_colors(images: Iterable[Float[Tensor, "_ _ _"]]) -> bool:
    """Return whether a training on images should keep their colours.

    Args:
        images: Some of the images.

    Returns:
        Whether more than :data:`MIN_SHARE` of them have colours, and none has another number of channels than 1 and 3.
    """
    examined = list(images)
    if any(image.shape[0] not in (1, 3) for image in examined):
        return False
    return sum(map(has_colors, examined)) > MIN_SHARE * len(examined)


def files_have_colors(paths: Sequence[Path]) -> bool:
    """Return whether a training on image files should keep their colours.

    Args:
        paths: The files. At most :data:`MAX_EXAMINED_IMAGES` of them are read, at equal distances.

    Returns:
        As :func:`have_colors`. Files that cannot be read do not count.
    """
    examined = [paths[position] for position in evenly_spaced(len(paths), MAX_EXAMINED_IMAGES)]
    images = (image for _, image in read_letterboxed(examined, EXAMINED_SIDE, color=True))
    return have_colors(image for image in images if not isinstance(image, UnreadableFile))
