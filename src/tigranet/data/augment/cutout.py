"""Cutout: a random square of each image is replaced by the mean of the image."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def cutout(
    images: Float[Tensor, "batch maps height width"], fraction: float
) -> Float[Tensor, "batch maps height width"]:
    """Replace one random square of each image by the mean of the image.

    A network that is trained with it cannot rely on one part of an object alone. The centre of the square is uniform in
    the image, so the square may extend beyond the border. Its distribution commutes with quarter turns, mirror images
    and linear changes of the values.

    Args:
        images: The images. Each has its own random square.
        fraction: Side length of the square as a fraction of the shorter side of the images. It is rounded to whole
            pixels.

    Returns:
        The images with their squares.
    """
    height, width = images.shape[2:]
    side = round(fraction * min(height, width))
    top, left = (
        torch.randint(first, last + 1, (len(images),), device=images.device)
        for first, last in (square_positions(length, side) for length in (height, width))
    )
    return erase_square(images, top, left, side)


def square_positions(length: int, side: int) -> tuple[int, int]:
    """Return the first and the last position at which a square starts along one axis.

    The square with these positions has its centre in the image. Reversing the axis maps them to each other.

    Args:
        length: Length of the axis in pixels.
        side: Side length of the square in pixels.

    Returns:
        The positions. The first one is negative for squares that extend beyond the border.

    Example:
        >>> square_positions(10, 4), square_positions(10, 3)
        ((-2, 8), (-1, 8))
    """
    first = -(side // 2)
    return first, length - side - first


def erase_square(
    images: Float[Tensor, "batch maps height width"],
    top: Int[Tensor, " batch"],
    left: Int[Tensor, " batch"],
    side: int,
) -> Float[Tensor, "batch maps height width"]:
    """Replace a square of each image by the mean of the image, separately for each channel.

    Args:
        images: The images.
        top: First row of the square in each image. It may be outside the image.
        left: First column of the square in each image.
        side: Side length of the squares in pixels.

    Returns:
        The images with their squares.

    Example:
        >>> image = torch.eye(3).reshape(1, 1, 3, 3)
        >>> erase_square(3 * image, torch.tensor([-1]), torch.tensor([1]), 2).squeeze()
        tensor([[3., 1., 1.],
                [0., 3., 0.],
                [0., 0., 3.]])
    """
    rows, columns = (torch.arange(length, device=images.device) for length in images.shape[2:])
    is_row, is_column = (
        (first[:, None] <= positions) & (positions < first[:, None] + side)
        for first, positions in ((top, rows), (left, columns))
    )
    is_inside = is_row[:, None, :, None] & is_column[:, None, None, :]
    return torch.where(is_inside, images.mean((2, 3), keepdim=True), images)
