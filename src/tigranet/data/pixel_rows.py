"""Decoded pixels of any type to floating-point numbers in [0, 1], some rows at a time.

Converting a whole image at once takes several copies of it, and a copy in float32 is up to four times as large as the
image. In strips, only the decoded image itself is in memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.luminance import array_to_grey
from tigranet.data.value_range import full_scale

WIDE_LIMITS = (65535,)
"""White in integers of 32 and 64 bits. One file does not tell how bright the others are, so there is only one value."""
STRIP_VALUES = 2**18
"""Number of values in a strip, unless a single row has more."""
STRIP_BYTES_PER_VALUE = 64
"""Memory for the copies of a strip during its conversion, per value. An estimate from above."""


@dataclass(frozen=True)
class PixelRows:
    """A decoded image, from which rows can be read."""

    height: int
    """Number of rows."""
    width: int
    """Number of columns."""
    channels: int
    """Number of channels, without alpha."""
    read: Callable[[int, int], np.ndarray]
    """Returns the rows from a first to a last one (exclusive) in their own type, as (rows, width, channels)."""
    has_alpha: bool = False
    """Whether one more channel follows, by which the others must be multiplied."""
    close: Callable[[], None] = lambda: None
    """Frees the memory of the decoded image, even where a reference to this object remains."""

    @property
    def rows_per_strip(self) -> int:
        """Number of rows that are converted at a time."""
        return rows_per_strip(self.width, self.channels)

    def strips(self) -> Iterator[np.ndarray]:
        """Yield all rows in strips, from top to bottom.

        Yields:
            Arrays (rows, width, channels) in the type of the file.
        """
        for start in range(0, self.height, self.rows_per_strip):
            yield self.read(start, min(start + self.rows_per_strip, self.height))


def rows_per_strip(width: int, channels: int) -> int:
    """Return the number of rows that are converted at a time.

    Args:
        width: Number of columns.
        channels: Number of channels.

    Returns:
        The number of rows that hold ``STRIP_VALUES`` values, at least 1.
    """
    return max(1, STRIP_VALUES // max(1, width * channels))


def strip_bytes(width: int, channels: int) -> int:
    """Estimate the memory that the conversion of one strip takes.

    Args:
        width: Number of columns.
        channels: Number of channels, with alpha.

    Returns:
        An upper limit in bytes.
    """
    return STRIP_BYTES_PER_VALUE * max(STRIP_VALUES, width * channels)


class _Range(NamedTuple):
    """Smallest and largest of some values."""

    low: float
    high: float


def unit_strips(
    pixels: PixelRows, color: bool, channels: slice = slice(None)
) -> Iterator[Float[np.ndarray, "rows width channels"]]:
    """Convert an image to numbers in [0, 1], strip by strip.

    Integers are divided by :func:`~tigranet.data.value_range.full_scale`. Floating-point numbers are used as they are
    if they lie in [0, 1], otherwise they are scaled from their range to [0, 1].

    Args:
        pixels: The image.
        color: Return all channels instead of the luminance.
        channels: The channels to return. Not used without ``color``.

    Yields:
        The rows in 32-bit floating-point numbers, from top to bottom.

    Raises:
        UnreadableImageError: If the image has no pixels, or holds NaN, infinity, complex numbers, or integers out of
            range.
    """
    if not pixels.height or not pixels.width or not pixels.channels:
        raise UnreadableImageError(f"has no pixels: {pixels.height} x {pixels.width}, channels: {pixels.channels}")
    is_one_strip = pixels.rows_per_strip >= pixels.height
    strips = list(pixels.strips()) if is_one_strip else []  # a large image is converted anew each time
    kind = (strips[0] if strips else pixels.read(0, 1)).dtype
    if kind.kind not in "biuf":
        raise UnreadableImageError(f"holds {'complex numbers' if kind.kind == 'c' else kind}, expected real numbers")
    colour_range, alpha_range = _ranges(pixels, strips, kind)
    for strip in strips or pixels.strips():
        colours = _to_unit_range(strip[..., : pixels.channels][..., channels], colour_range)
        if pixels.has_alpha:
            colours = colours * _opacity(strip[..., pixels.channels :], alpha_range)
        yield colours if color else array_to_grey(colours)


def _ranges(pixels: PixelRows, strips: list[np.ndarray], kind: np.dtype) -> tuple[_Range, _Range]:
    """Return the ranges of the colours and of alpha. Those of integers of 8 and 16 bits do not matter."""
    if kind.kind in "iu" and kind.itemsize <= 2:
        return _Range(0, 0), _Range(0, 0)
    colours = alphas = None
    for strip in strips or pixels.strips():
        values = strip if kind.kind in "iu" else _to_finite_floats(strip)
        colours = _widened(colours, values[..., : pixels.channels])
        if pixels.has_alpha:
            alphas = _widened(alphas, values[..., pixels.channels :])
    assert colours is not None
    with np.errstate(over="ignore"):
        if kind.kind == "f" and not np.isfinite(colours.high - colours.low):
            raise UnreadableImageError(
                f"holds numbers from {colours.low:g} to {colours.high:g}, too far apart to scale"
            )
    return colours, alphas or _Range(0, 0)


def _widened(values: _Range | None, pixels: np.ndarray) -> _Range:
    """Extend a range so that it includes more pixels. The limits keep the type of the pixels."""
    low, high = pixels.min(), pixels.max()
    return _Range(low, high) if values is None else _Range(min(values.low, low), max(values.high, high))


def _opacity(alpha: np.ndarray, values: _Range) -> np.ndarray:
    """Scale an alpha channel to [0, 1]. Floating-point values are divided by their maximum if it is above 1."""
    if alpha.dtype.kind in "iu":
        return _to_unit_range(alpha, values)
    return np.clip(_to_finite_floats(alpha) / max(np.float32(1), values.high), 0, 1)


def _to_unit_range(pixels: np.ndarray, values: _Range) -> np.ndarray:
    if pixels.dtype.kind in "iu":
        try:
            max_value = full_scale(pixels.dtype, int(values.low), int(values.high), WIDE_LIMITS)
        except ValueError as error:
            raise UnreadableImageError(str(error)) from None
        scaled = pixels.astype(np.float32)
        scaled /= np.float32(max_value)
        return scaled
    scaled = _to_finite_floats(pixels)
    low, high = values
    if low >= 0 and high <= 1:
        return scaled
    if high <= low:
        return np.zeros_like(scaled)
    scaled -= low
    scaled /= high - low
    return scaled


def _to_finite_floats(pixels: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite
        floats = pixels.astype(np.float32)
    if not np.isfinite(floats).all():
        raise UnreadableImageError("holds NaN or infinity, or numbers beyond the range of float32")
    return floats
