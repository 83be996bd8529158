"""Symmetry checks: numbers that measure how far a function is from being equivariant or invariant.

Example:
    >>> from tigranet import TIGraNet
    >>> net = TIGraNet("paper-small", num_classes=3).eval()
    >>> images = torch.rand(2, 1, 28, 28)
    >>> max(invariance_error(net, images, symmetry) for symmetry in SQUARE.values()) < 1e-4
    True
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Transform = Callable[[Tensor], Tensor]
"""A function of images of shape (..., height, width)."""


def _square_symmetry(quarter_turns: int, reflected: bool) -> Transform:
    def transform(images: Tensor) -> Tensor:
        rotated = torch.rot90(images, quarter_turns, (-2, -1))
        return rotated.flip(-1) if reflected else rotated

    return transform


SQUARE: dict[str, Transform] = {
    f"{90 * k} degrees" + (", reflected" if reflected else ""): _square_symmetry(k, reflected)
    for reflected in (False, True)
    for k in range(4)
}
"""The eight symmetries of the square by name: counter-clockwise quarter turns, without and with a reflection."""


def torus_shift(down: int, right: int) -> Transform:
    """Return the cyclic shift by whole pixels: pixels that leave on one side enter on the opposite side.

    Args:
        down: Shift in pixels towards the bottom.
        right: Shift in pixels towards the right.

    Returns:
        A function of images.
    """
    return lambda images: torch.roll(images, (down, right), (-2, -1))


def torus_shifts(height: int, width: int) -> Iterator[Transform]:
    """Return all ``height * width`` cyclic shifts.

    Args:
        height: Height of the images.
        width: Width of the images.

    Returns:
        Functions of images.
    """
    return (torus_shift(down, right) for down in range(height) for right in range(width))


def on_nodes(transform: Transform, height: int, width: int) -> Transform:
    """Convert a function of images into a function of graph signals on their grid.

    Args:
        transform: A function of images.
        height: Height of the grid.
        width: Width of the grid.

    Returns:
        A function of signals of shape (..., height * width).
    """
    return lambda signals: transform(signals.unflatten(-1, (height, width))).flatten(-2)


def blobs(
    degrees: float | int = 0, seed: int = 0, size: int = 28, batch: int = 4, sigma: float = 2.0, reach: float = 6.0
) -> Tensor:
    """Create smooth random images that can be rotated by any angle without interpolation.

    An image is a sum of twelve Gaussian blobs on a disc around its centre. Rotation moves the centres of the blobs, so
    no pixel is interpolated. With ``sigma = 2``, the spectrum of an image is below 3e-9 at frequency 1/2, the bandwidth
    of the pixels. With ``reach = 6``, an image is below 2e-3 of its height more than 13 pixels from the centre.

    Args:
        degrees: Counter-clockwise rotation angle.
        seed: Seed of the random blobs.
        size: Height and width of the images.
        batch: Number of images.
        sigma: Standard deviation of a blob in pixels.
        reach: Radius of the disc in pixels.

    Returns:
        Images of shape (batch, 1, size, size).

    Example:
        >>> torch.allclose(blobs(90.0), torch.rot90(blobs(), 1, (2, 3)), atol=1e-6)
        True
    """
    generator = torch.Generator().manual_seed(seed)
    radius, angle, height = torch.rand(3, batch, 12, 1, 1, generator=generator, dtype=torch.float64)
    angle = 2 * math.pi * angle + math.radians(degrees)
    radius = reach * radius.sqrt()
    axis = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    x, y = axis - radius * angle.cos(), -axis[:, None] - radius * angle.sin()
    return ((2 * height - 1) * torch.exp(-(x**2 + y**2) / (2 * sigma**2))).sum(1, keepdim=True).float()


def equivariance_error(
    function: Transform, inputs: Tensor, transform: Transform, transform_output: Transform | None = None
) -> float:
    """Measure how far a function is from commuting with a transformation.

    Args:
        function: The function.
        inputs: Inputs of the function.
        transform: Transformation of the inputs.
        transform_output: Transformation of the outputs. By default it is ``transform``.

    Returns:
        The largest absolute difference between ``function(transform(inputs))`` and
        ``transform_output(function(inputs))``, divided by the range (maximum minus minimum) of the latter. It is 0 for
        an equivariant function. If the range is 0, the difference is not divided.

    Raises:
        ValueError: If the two results have different shapes.
    """
    expected = (transform_output or transform)(function(inputs).detach())
    return _relative_difference(function(transform(inputs)).detach(), expected)


def invariance_error(function: Callable[[Tensor], Tensor], inputs: Tensor, transform: Transform) -> float:
    """Measure how much the output of a function changes when its inputs are transformed.

    Args:
        function: The function.
        inputs: Inputs of the function.
        transform: Transformation of the inputs.

    Returns:
        The largest absolute change of an output value, divided by the range (maximum minus minimum) of the outputs. It
        is 0 for an invariant function. If the range is 0, the change is not divided.

    Raises:
        ValueError: If the outputs for the original and the transformed inputs have different shapes.
    """
    return equivariance_error(function, inputs, transform, lambda outputs: outputs)


def _relative_difference(actual: Tensor, expected: Tensor) -> float:
    if actual.shape != expected.shape:
        raise ValueError(
            f"expected an output of shape {tuple(expected.shape)} for the transformed inputs, "
            f"got shape {tuple(actual.shape)}"
        )
    actual, expected = actual.double(), expected.double()
    difference, value_range = (actual - expected).abs().max(), expected.max() - expected.min()
    return float(difference / value_range) if value_range > 0 else float(difference)
