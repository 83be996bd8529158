"""Whether images fill their frame, as photographs do, or show an object on a plain background."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from tigranet.data.augment.background import background_of
from tigranet.data.evenly_spaced import evenly_spaced
from tigranet.image_border import border_of

MAX_EXAMINED_IMAGES = 256
"""Number of images of a data set that are examined."""
MIN_BORDER_VARIATION = 2 / 3
"""An image fills its frame if its border varies more than this fraction of the variation of the whole image. Of 256
training images, 0 % do so in MNIST, 1 % in plankton on white, 27 % in ETH-80 (objects in front of a cloth), 77 % in
CIFAR-10 (photographs) and 99 % in NEU steel (textures)."""


class FrameFilling(NamedTuple):
    """How many images of a data set fill their frame."""

    examined: int
    """Number of images that were examined."""
    filling: int
    """How many of them fill their frame."""

    @property
    def is_typical(self) -> bool:
        """Whether more than half of the examined images fill their frame."""
        return 2 * self.filling > self.examined


def examine_frames(images: Float[Tensor, "count maps height width"]) -> FrameFilling:
    """Count the images that fill their frame, so that a rotation moves parts of their content out of it.

    An image fills its frame if the standard deviation of its border pixels is more than
    :data:`MIN_BORDER_VARIATION` times that of all its pixels. The two are about equal for a texture, and the first is
    small for an object on a plain or nearly plain background. Images of fewer than 3 rows or columns, which are nothing
    but border, do not fill a frame. Plain bars at two opposite borders, which
    :func:`~tigranet.data.letterbox.letterbox` adds to images that are not square, are removed first: a photograph with
    bars is still a photograph.

    Rotating images by quarter turns, reflecting them, or changing their values by a linear function does not change the
    result, except for how the values are rounded.

    Args:
        images: The images of a data set. At most :data:`MAX_EXAMINED_IMAGES` of them are examined, at equal distances.

    Returns:
        The number of images that were examined, and how many of them fill their frame.

    Example:
        >>> import torch
        >>> noise, black = torch.rand(3, 1, 8, 8), torch.zeros(2, 1, 8, 8)
        >>> examine_frames(torch.cat([noise, black]))
        FrameFilling(examined=5, filling=3)
    """
    positions = evenly_spaced(len(images), MAX_EXAMINED_IMAGES)
    return FrameFilling(len(positions), sum(_fills_frame(images[position]) for position in positions))


def _fills_frame(image: Tensor) -> bool:
    content = _without_bars(image)[None].double()
    if min(content.shape[2:]) < 3:
        return False
    border, whole = (pixels.var(-1, correction=0).sum() for pixels in (border_of(content), content.flatten(2)))
    return bool(border > MIN_BORDER_VARIATION**2 * whole)


def _without_bars(image: Tensor) -> Tensor:
    """Remove plain bars of equal width (up to one pixel) at two opposite borders.

    They remain if most of the border of the rest has the same value: then the image is an object on a plain background
    that touches the two other borders.
    """
    is_plain = (image == background_of(image[None]).value[0]).all(0)
    (top, bottom), (left, right) = (_outer_lines(is_plain.all(axis)) for axis in (1, 0))
    if (left, right) != (0, 0) and (top, bottom) != (0, 0):
        return image
    if abs(top - bottom) > 1 or abs(left - right) > 1:
        return image
    rest = (..., slice(top, len(is_plain) - bottom), slice(left, is_plain.shape[1] - right))
    return image if 2 * border_of(is_plain[rest][None, None].float()).mean() > 1 else image[rest]


def _outer_lines(are_plain: Tensor) -> tuple[int, int]:
    """Return the number of plain lines before the first and after the last line that is not plain."""
    others = (~are_plain).nonzero().flatten()
    if not len(others):
        return len(are_plain), len(are_plain)
    return int(others[0]), len(are_plain) - 1 - int(others[-1])
