"""How a network bears a movement that grows: accuracy, confidence and the change of its answer, point by point."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.data.augment.rigid import Padding, rotate, shift
from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.predictions import Transform, logits_of, predict_classes
from tigranet.testing import invariance_error

ANGLES = tuple(float(angle) for angle in range(0, 361, 15))
DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1))


def turned(
    images: Float[Tensor, "batch maps height width"], degrees: float, padding: Padding = "zeros"
) -> Float[Tensor, "batch maps turned_height turned_width"]:
    """Images turned counter-clockwise; by a multiple of 90 degrees their pixels change places, by no other arithmetic.

    >>> turned(torch.eye(2).reshape(1, 1, 2, 2), 450.0).squeeze()
    tensor([[0., 1.],
            [1., 0.]])
    """
    quarters, rest = divmod(degrees, 90)
    if rest == 0:
        return torch.rot90(images, int(quarters) % 4, (2, 3))
    return rotate(images, torch.full((len(images),), degrees), padding=padding)


def shifted(
    images: Float[Tensor, "batch maps height width"], down: int, right: int, padding: Padding = "zeros"
) -> Float[Tensor, "batch maps height width"]:
    """All images shifted alike."""
    return shift(images, torch.full((len(images),), down), torch.full((len(images),), right), padding)


@dataclass(frozen=True)
class Curve:
    """Accuracy and mean confidence, in per cent, of ``images`` images at each point."""

    images: int
    at: tuple[float, ...]
    """Degrees or pixels."""
    accuracy: tuple[float, ...]
    confidence: tuple[float, ...]


@dataclass(frozen=True)
class Invariance:
    r"""How much the logits :math:`\phi` of ``images`` images change when they are turned, at each angle."""

    images: int
    at: tuple[float, ...]
    """Degrees."""
    change: tuple[float, ...]
    r"""The mean over the images of :math:`\lVert\phi(R x) - \phi(x)\rVert / \lVert\phi(x)\rVert`."""
    accuracy: tuple[float, ...] | None
    """In per cent, where labels are there."""

    def mean_change(self, quarters: bool) -> float:
        """Over the quarter turns, or over all other angles; what is not turned counts for neither."""
        points = zip(self.at, self.change, strict=True)
        asked = [change for at, change in points if at % 360 and (at % 90 == 0) == quarters]
        return sum(asked) / len(asked) if asked else float("nan")


def shift_lengths(size: int) -> tuple[float, ...]:
    """From 0 to a quarter of an image of ``size``, in whole pixels, at most 16 of them.

    >>> shift_lengths(28), shift_lengths(64)
    ((0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0), (0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0))
    """
    reach = size // 4
    return tuple(float(length) for length in range(0, reach + 1, max(1, reach // 8)))


def against_angle(
    module: nn.Module,
    data: LabelledImages,
    padding: Padding = "zeros",
    angles: Sequence[float] = ANGLES,
    step: Callable[[], None] = lambda: None,
) -> Curve:
    """All images turned by each of ``angles``; ``step`` is called after each.

    At quarter turns nothing is interpolated, so an invariant network is right as often as upright, to the image.
    """

    def transforms(angle: float) -> list[Transform]:
        return [partial(turned, degrees=angle, padding=padding)]

    return _curve(module, data, angles, transforms, lambda angle: angle % 360, step)


def against_shift(
    module: nn.Module,
    data: LabelledImages,
    padding: Padding = "zeros",
    lengths: Sequence[float] | None = None,
    step: Callable[[], None] = lambda: None,
) -> Curve:
    """All images shifted by each number of pixels, the mean over down, right, up and left."""

    def transforms(length: float) -> list[Transform]:
        steps = [(int(length) * down, int(length) * right) for down, right in DIRECTIONS] if length else [(0, 0)]
        return [partial(shifted, down=down, right=right, padding=padding) for down, right in steps]

    lengths = shift_lengths(min(data.images.shape[2:])) if lengths is None else lengths
    return _curve(module, data, lengths, transforms, lambda length: length, step)


def change_by_angle(
    function: Transform,
    images: Float[Tensor, "count maps height width"],
    padding: Padding = "zeros",
    angles: Sequence[float] = ANGLES,
    step: Callable[[], None] = lambda: None,
) -> tuple[float, ...]:
    """The invariance error (:func:`tigranet.testing.invariance_error`) of ``function`` at each angle: the largest
    change of any number that it answers to any image, as a part of their range."""

    with torch.inference_mode():
        upright = function(images)

    def answer(given: Tensor) -> Tensor:
        return upright if given is images else function(given)  # that of the upright images is always the same

    def one(angle: float) -> float:
        with torch.inference_mode():
            error = invariance_error(answer, images, partial(turned, degrees=angle, padding=padding))
        step()
        return error

    return tuple(one(angle) for angle in angles)


def invariance(
    module: nn.Module,
    images: Float[Tensor, "count maps height width"],
    labels: Int[Tensor, " count"] | None = None,
    padding: Padding = "zeros",
    angles: Sequence[float] = ANGLES,
    step: Callable[[], None] = lambda: None,
) -> Invariance:
    """The relative change of the logits of ``module`` when ``images`` are turned, and its accuracy.

    The logits and not the statistics, because every network has them, one without invariant statistics too, and
    because the statistics span orders of magnitude: the norm of their change would be that of the largest few.
    """
    upright = logits_of(module, images)
    seen: dict[float, tuple[float, float]] = {}
    for angle in angles:
        if angle % 360 not in seen:
            logits = logits_of(module, images, partial(turned, degrees=angle, padding=padding))
            right = 0.0 if labels is None else 100 * float((logits.argmax(1) == labels).double().mean())
            seen[angle % 360] = relative_change(logits, upright), right
        step()
    changes, rights = zip(*(seen[angle % 360] for angle in angles), strict=True)
    return Invariance(len(images), tuple(angles), changes, None if labels is None else rights)


def relative_change(came: Float[Tensor, "count numbers"], before: Float[Tensor, "count numbers"]) -> float:
    r"""The mean over the rows of :math:`\lVert\text{came} - \text{before}\rVert / \lVert\text{before}\rVert`.

    >>> relative_change(torch.tensor([[3.0, 4.0], [1.0, 0.0]]), torch.tensor([[3.0, 4.0], [2.0, 0.0]]))
    0.25
    """
    came, before = came.double(), before.double()
    return float(((came - before).norm(dim=1) / before.norm(dim=1)).mean())


def _curve(
    module: nn.Module,
    data: LabelledImages,
    points: Sequence[float],
    transforms: Callable[[float], list[Transform]],
    same: Callable[[float], float],
    step: Callable[[], None],
) -> Curve:
    """The mean over the ``transforms`` of each point; points that are the ``same`` are measured once."""
    seen: dict[float, tuple[float, float]] = {}
    for point in points:
        if same(point) not in seen:
            asked = [predict_classes(module, data.images, transform) for transform in transforms(same(point))]
            accuracy = sum(part.right(data) for part in asked) / (len(asked) * len(data.labels))
            confidence = sum(float(part.confidence.double().mean()) for part in asked) / len(asked)
            seen[same(point)] = (100 * accuracy, 100 * confidence)
        step()
    values = [seen[same(point)] for point in points]
    return Curve(
        len(data.labels), tuple(points), tuple(value for value, _ in values), tuple(value for _, value in values)
    )
