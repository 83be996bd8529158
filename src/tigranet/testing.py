"""Symmetry as a number: how far a function is from being equivariant or invariant.

>>> from tigranet import TIGraNet
>>> net = TIGraNet("paper-small", num_classes=3).eval()
>>> images = torch.rand(2, 1, 28, 28)
>>> max(invariance_error(net, images, turn) for turn in SQUARE.values()) < 1e-4
True
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Transform = Callable[[Tensor], Tensor]
"""A function of images (..., height, width)."""


def _symmetry(quarter_turns: int, reflected: bool) -> Transform:
    def transform(images: Tensor) -> Tensor:
        turned = torch.rot90(images, quarter_turns, (-2, -1))
        return turned.flip(-1) if reflected else turned

    return transform


SQUARE: dict[str, Transform] = {
    f"{90 * k} degrees" + (", reflected" if reflected else ""): _symmetry(k, reflected)
    for reflected in (False, True)
    for k in range(4)
}
"""The eight symmetries of the square, by name: quarter turns, counter-clockwise, and their reflections."""


def torus_shift(down: int, right: int) -> Transform:
    """Images shifted by whole pixels; what leaves on one side comes in on the other."""
    return lambda images: torch.roll(images, (down, right), (-2, -1))


def torus_shifts(height: int, width: int) -> Iterator[Transform]:
    """All ``height * width`` shifts of the torus."""
    return (torus_shift(down, right) for down in range(height) for right in range(width))


def on_nodes(transform: Transform, height: int, width: int) -> Transform:
    """``transform``, of images, as a function of signals (..., height * width) on their grid."""
    return lambda signals: transform(signals.unflatten(-1, (height, width))).flatten(-2)


def blobs(
    degrees: float | int = 0, seed: int = 0, size: int = 28, batch: int = 4, sigma: float = 2.0, reach: float = 6.0
) -> Tensor:
    """Smooth images (batch, 1, size, size) that can be turned by any angle without interpolation: twelve Gaussian blobs
    each, on a disc about its centre, turned counter-clockwise.

    With sigma = 2 their spectrum is below 3e-9 at the pixels' bandwidth, 1/2, and with reach = 6 they are below 2e-3
    of their height outside 13 pixels from the centre.

    >>> torch.allclose(blobs(90.0), torch.rot90(blobs(), 1, (2, 3)), atol=1e-6)
    True
    """
    generator = torch.Generator().manual_seed(seed)
    radius, angle, height = torch.rand(3, batch, 12, 1, 1, generator=generator, dtype=torch.float64)
    angle = 2 * math.pi * angle + math.radians(degrees)
    radius = reach * radius.sqrt()
    axis = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    across, up = axis - radius * angle.cos(), -axis[:, None] - radius * angle.sin()
    return ((2 * height - 1) * torch.exp(-(across**2 + up**2) / (2 * sigma**2))).sum(1, keepdim=True).float()


def equivariance_error(
    function: Transform, inputs: Tensor, transform: Transform, transform_output: Transform | None = None
) -> float:
    """The largest difference between transform-then-apply and apply-then-transform, as a part of the
    answer's range: 0 for an equivariant ``function``. Answers are transformed as inputs are, unless told.
    """
    wanted = (transform_output or transform)(function(inputs).detach())
    return _relative(function(transform(inputs)).detach(), wanted)


def invariance_error(function: Callable[[Tensor], Tensor], inputs: Tensor, transform: Transform) -> float:
    """The largest change of the answer when the input is transformed, as a part of the answer's range:
    0 for an invariant ``function``.
    """
    return equivariance_error(function, inputs, transform, lambda answer: answer)


def _relative(came: Tensor, wanted: Tensor) -> float:
    if came.shape != wanted.shape:
        raise ValueError(
            f"the answer to the transformed input has shape {tuple(came.shape)}, not {tuple(wanted.shape)}"
        )
    came, wanted = came.double(), wanted.double()
    difference, size = (came - wanted).abs().max(), wanted.max() - wanted.min()
    return float(difference / size) if size > 0 else float(difference)
