"""Curves over the angle or the length of a movement: accuracy, confidence and change of the output."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.data.augment.rigid import Padding, rotate, shift
from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.predictions import Transform, highest_classes, logits_of, predict_classes
from tigranet.testing import invariance_error

ANGLES = tuple(float(angle) for angle in range(0, 361, 15))
"""Default angles of all curves, in degrees."""
DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Down, right, up and left, as (down, right)."""


def rotate_all(
    images: Float[Tensor, "batch maps height width"], degrees: float, padding: Padding = "zeros"
) -> Float[Tensor, "batch maps rotated_height rotated_width"]:
    """Rotate all images counter-clockwise by the same angle.

    A multiple of 90 degrees only permutes the pixels; other angles interpolate.

    Args:
        images: The images.
        degrees: The angle.
        padding: What enters from outside the image.

    Returns:
        The rotated images. Odd multiples of 90 degrees exchange height and width.

    Example:
        >>> rotate_all(torch.eye(2).reshape(1, 1, 2, 2), 450.0).squeeze()
        tensor([[0., 1.],
                [1., 0.]])
    """
    quarters, rest = divmod(degrees, 90)
    if rest == 0:
        return torch.rot90(images, int(quarters) % 4, (2, 3))
    return rotate(images, torch.full((len(images),), degrees), padding=padding)


def shift_all(
    images: Float[Tensor, "batch maps height width"], down: int, right: int, padding: Padding = "zeros"
) -> Float[Tensor, "batch maps height width"]:
    """Shift all images by the same number of pixels.

    Args:
        images: The images.
        down: Pixels down.
        right: Pixels to the right.
        padding: What enters from outside the image.

    Returns:
        The shifted images.
    """
    return shift(images, torch.full((len(images),), down), torch.full((len(images),), right), padding)


@dataclass(frozen=True)
class Curve:
    """Accuracy and mean confidence, in per cent, at each angle or length of a shift."""

    images: int
    """Number of images."""
    at: tuple[float, ...]
    """Angles in degrees, or lengths in pixels."""
    accuracy: tuple[float, ...]
    """Accuracy at each of ``at``."""
    confidence: tuple[float, ...]
    """Mean probability of the predicted class at each of ``at``."""


@dataclass(frozen=True)
class Invariance:
    r"""Relative change of the logits :math:`\phi` at each angle of rotation."""

    images: int
    """Number of images."""
    at: tuple[float, ...]
    """Angles in degrees."""
    change: tuple[float, ...]
    r"""Mean over the images of :math:`\lVert\phi(R x) - \phi(x)\rVert / \lVert\phi(x)\rVert`."""
    accuracy: tuple[float, ...] | None
    """Accuracy in per cent, or None without labels."""

    def mean_change(self, quarters: bool) -> float:
        """Return the mean change over quarter turns, or over all other angles.

        Args:
            quarters: Whether to average over 90, 180 and 270 degrees, or over the angles between them.

        Returns:
            The mean, or NaN if there is no such angle. Full turns are not included in either.
        """
        points = zip(self.at, self.change, strict=True)
        changes = [change for angle, change in points if angle % 360 and (angle % 90 == 0) == quarters]
        return sum(changes) / len(changes) if changes else float("nan")


def shift_lengths(size: int) -> tuple[float, ...]:
    """Return the default lengths of a shift curve: whole pixels from 0 to a quarter of the image, at most 16 of them.

    Args:
        size: Height or width of the images, whichever is smaller.

    Returns:
        The lengths in pixels.

    Example:
        >>> shift_lengths(28), shift_lengths(64)
        ((0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0), (0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0))
    """
    longest = size // 4
    return tuple(float(length) for length in range(0, longest + 1, max(1, longest // 8)))


def angle_curve(
    module: nn.Module,
    data: LabelledImages,
    padding: Padding = "zeros",
    angles: Sequence[float] = ANGLES,
    step: Callable[[], None] = lambda: None,
) -> Curve:
    """Measure accuracy and confidence with all images rotated by each of several angles.

    Quarter turns do not interpolate, so an invariant network has exactly its upright accuracy there.

    Args:
        module: The network, from images to logits (batch, classes).
        data: The images and their labels.
        padding: What enters from outside the image.
        angles: The angles in degrees.
        step: Called after each angle.

    Returns:
        The curve.
    """

    def transforms(angle: float) -> list[Transform]:
        return [partial(rotate_all, degrees=angle, padding=padding)]

    return _curve(module, data, angles, transforms, lambda angle: angle % 360, step)


def shift_curve(
    module: nn.Module,
    data: LabelledImages,
    padding: Padding = "zeros",
    lengths: Sequence[float] | None = None,
    step: Callable[[], None] = lambda: None,
) -> Curve:
    """Measure accuracy and confidence with all images shifted, as the mean over down, right, up and left.

    Args:
        module: The network, from images to logits (batch, classes).
        data: The images and their labels.
        padding: What enters from outside the image.
        lengths: The lengths of the shifts in pixels. None uses :func:`shift_lengths`.
        step: Called after each length.

    Returns:
        The curve.
    """

    def transforms(length: float) -> list[Transform]:
        shifts = [(int(length) * down, int(length) * right) for down, right in DIRECTIONS] if length else [(0, 0)]
        return [partial(shift_all, down=down, right=right, padding=padding) for down, right in shifts]

    lengths = shift_lengths(min(data.images.shape[2:])) if lengths is None else lengths
    return _curve(module, data, lengths, transforms, lambda length: length, step)


def invariance_error_by_angle(
    function: Transform,
    images: Float[Tensor, "count maps height width"],
    padding: Padding = "zeros",
    angles: Sequence[float] = ANGLES,
    step: Callable[[], None] = lambda: None,
) -> tuple[float, ...]:
    """Measure :func:`tigranet.testing.invariance_error` of a function at each of several angles.

    Args:
        function: A function of a batch of images. It receives all images at once.
        images: The images, on the device where ``function`` computes.
        padding: What enters from outside the image.
        angles: The angles in degrees.
        step: Called after each angle.

    Returns:
        The largest change of any output for any image, as a fraction of the range of the outputs, at each angle.
    """
    with torch.inference_mode():
        upright = function(images)

    def function_with_upright_output_stored(batch: Tensor) -> Tensor:
        return upright if batch is images else function(batch)

    def error_at(angle: float) -> float:
        rotation = partial(rotate_all, degrees=angle, padding=padding)
        with torch.inference_mode():
            error = invariance_error(function_with_upright_output_stored, images, rotation)
        step()
        return error

    return tuple(error_at(angle) for angle in angles)


def invariance(
    module: nn.Module,
    images: Float[Tensor, "count maps height width"],
    labels: Int[Tensor, " count"] | None = None,
    padding: Padding = "zeros",
    angles: Sequence[float] = ANGLES,
    step: Callable[[], None] = lambda: None,
) -> Invariance:
    """Measure the relative change of the logits when images are rotated, and the accuracy.

    The logits are compared, because every network has them, also one without invariant features, and because the
    features span orders of magnitude, so that the norm of their change would depend on the largest few only.

    Args:
        module: The network, from images to logits (batch, classes).
        images: The images.
        labels: Their labels, for the accuracy.
        padding: What enters from outside the image.
        angles: The angles in degrees.
        step: Called after each angle.

    Returns:
        Change and accuracy at each angle.
    """
    upright = logits_of(module, images)
    results: dict[float, tuple[float, float]] = {}
    for angle in angles:
        if angle % 360 not in results:
            logits = logits_of(module, images, partial(rotate_all, degrees=angle, padding=padding))
            accuracy = 0.0 if labels is None else 100 * float((highest_classes(logits) == labels).double().mean())
            results[angle % 360] = relative_change(logits, upright), accuracy
        step()
    changes, accuracies = zip(*(results[angle % 360] for angle in angles), strict=True)
    return Invariance(len(images), tuple(angles), changes, None if labels is None else accuracies)


def relative_change(after: Float[Tensor, "count numbers"], before: Float[Tensor, "count numbers"]) -> float:
    r"""Return the mean over the rows of :math:`\lVert\text{after} - \text{before}\rVert / \lVert\text{before}\rVert`.

    Rows with NaN or infinity do not count.

    Args:
        after: The changed vectors.
        before: The original vectors.

    Returns:
        The mean relative change.

    Example:
        >>> relative_change(torch.tensor([[3.0, 4.0], [1.0, 0.0]]), torch.tensor([[3.0, 4.0], [2.0, 0.0]]))
        0.25
    """
    is_finite = after.isfinite().all(1) & before.isfinite().all(1)
    after, before = after[is_finite].double(), before[is_finite].double()
    return float(((after - before).norm(dim=1) / before.norm(dim=1)).mean())


def _curve(
    module: nn.Module,
    data: LabelledImages,
    points: Sequence[float],
    transforms: Callable[[float], list[Transform]],
    canonical: Callable[[float], float],
    step: Callable[[], None],
) -> Curve:
    """Measure the mean over the transforms of each point. Points with the same canonical value are measured once."""
    results: dict[float, tuple[float, float]] = {}
    for point in points:
        value = canonical(point)
        if value not in results:
            predictions = [predict_classes(module, data.images, transform) for transform in transforms(value)]
            correct = sum(each.count_correct(data) for each in predictions)
            confidence = sum(float(each.confidence.double().mean()) for each in predictions) / len(predictions)
            results[value] = 100 * (correct / (len(predictions) * len(data.labels))), 100 * confidence
        step()
    accuracies, confidences = zip(*(results[canonical(point)] for point in points), strict=True)
    return Curve(len(data.labels), tuple(points), accuracies, confidences)
