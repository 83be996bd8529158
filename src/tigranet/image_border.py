"""The outermost pixels of images."""

import torch
from jaxtyping import Float
from torch import Tensor


def border_of(images: Float[Tensor, "batch maps height width"]) -> Float[Tensor, "batch maps border"]:
    """Return the outermost pixels of each image, each of them once.

    The shape of the images may be symbolic, so that exporters can trace the function.

    Args:
        images: The images.

    Returns:
        The pixels of the first and the last row, and then those between them in the first and the last column.

    Example:
        >>> border_of(torch.arange(9.0).reshape(1, 1, 3, 3)).tolist()
        [[[0.0, 1.0, 2.0, 6.0, 7.0, 8.0, 3.0, 5.0]]]
    """
    # The last of all rows except the first is empty in an image of one row. The same holds for columns.
    rows = [images[:, :, :1], images[:, :, 1:][:, :, -1:]]
    sides = [images[:, :, 1:-1, :1], images[:, :, 1:-1, 1:][:, :, :, -1:]]
    return torch.cat([edge.flatten(2) for edge in (*rows, *sides)], -1)
