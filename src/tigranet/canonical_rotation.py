"""One representative of an image and its quarter turns, so that all four have bitwise the same answers."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class CanonicalImages(NamedTuple):
    """Images in their canonical rotation."""

    images: Float[Tensor, "batch maps height width"]
    """The rotated images. Their height is at most their width."""
    quarter_turns: Int[Tensor, " batch"]
    """By how many quarter turns, counter-clockwise, each image was rotated: 0, 1, 2 or 3."""


def canonical_rotation(images: Float[Tensor, "batch maps rows columns"]) -> CanonicalImages:
    r"""Rotate each image by the number of quarter turns that makes its pixels the smallest in lexicographic order.

    With the quarter turn R and the lexicographic order of the pixels, row by row,

    .. math:: c(x) = \min \{x, R x, R^2 x, R^3 x\}, \qquad c(R x) = c(x),

    where of an image that is not square only the two rotations with the larger side as width count. The set does not
    change when x is rotated, so :math:`f(c(x))` is exactly the same for an image and its quarter turns, whatever f is.
    A network that is invariant computes :math:`f(c(x)) = f(x)` up to rounding. This function removes the rounding
    errors, for answers that compare a number with a threshold.

    Args:
        images: The images. Pixels that are NaN have no order, and such images may stay as they are.

    Returns:
        The rotated images, and by how much each was rotated. Of equal rotations the first is chosen.

    Shape:
        ``(batch, maps, rows, columns) -> (batch, maps, height, width)``, where height and width are the smaller and
        the larger of rows and columns.

    Example:
        >>> image = torch.tensor([[1.0, 2.0], [0.0, 3.0]])[None, None]
        >>> canonical_rotation(image).images.squeeze()
        tensor([[0., 1.],
                [3., 2.]])
        >>> turned = torch.rot90(image, 1, (2, 3))
        >>> bool((canonical_rotation(turned).images == canonical_rotation(image).images).all())
        True
    """
    rows, columns = images.shape[2:]
    turns = (0, 1, 2, 3) if rows == columns else (0, 2) if rows < columns else (1, 3)
    best = torch.rot90(images, turns[0], (2, 3)).contiguous()
    quarter_turns = torch.full((len(images),), turns[0], device=images.device)
    for turn in turns[1:]:
        rotated = torch.rot90(images, turn, (2, 3)).contiguous()
        is_smaller = _is_smaller(rotated.flatten(1), best.flatten(1))
        best = torch.where(is_smaller[:, None, None, None], rotated, best)
        quarter_turns = torch.where(is_smaller, turn, quarter_turns)
    return CanonicalImages(best, quarter_turns)


def rotate_back(
    images: Float[Tensor, "batch maps height width"], quarter_turns: Int[Tensor, " batch"]
) -> list[Float[Tensor, "maps _ _"]]:
    """Undo the rotations of :func:`canonical_rotation`, for maps that rotate with the image.

    Args:
        images: Images or maps that belong to images in their canonical rotation.
        quarter_turns: By how many quarter turns each image was rotated.

    Returns:
        The images, each as before its rotation.
    """
    return [torch.rot90(image, -turn, (1, 2)) for image, turn in zip(images, quarter_turns.tolist(), strict=True)]


def _is_smaller(a: Tensor, b: Tensor) -> Tensor:
    """Return for each row whether ``a`` comes before ``b`` in lexicographic order."""
    first = (a != b).int().argmax(1, keepdim=True)  # argmax returns the first of equal values
    return (a.gather(1, first) < b.gather(1, first)).squeeze(1)
