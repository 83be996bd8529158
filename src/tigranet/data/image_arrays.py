"""NumPy arrays of images to tensors: which axes are height, width and channels, and which value is white."""

from dataclasses import dataclass
from math import isqrt, prod

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.value_range import WIDE, full_scale

MAX_CHANNELS = 4
"""Red, green, blue and alpha. An image with more channels in its last axis, and at most this number of entries in its
first, is taken for one whose channels come first."""


def shape_of_images(pixels: np.ndarray, image_shape: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Return the shape of each image of an array.

    Args:
        pixels: Images (n, H, W) or (n, H, W, C), or rows of pixels (n, H * W * C).
        image_shape: Shape (H, W) or (H, W, C) of the images in rows of pixels. None stands for square images if the
            number of pixels is a square, and for images of one row otherwise. Not used for other arrays.

    Returns:
        (H, W) or (H, W, C).

    Raises:
        ValueError: If ``image_shape`` does not have the number of pixels of a row, or if channels come first.

    Example:
        >>> [shape_of_images(np.zeros(shape)) for shape in ((5, 64), (5, 10), (5, 4, 6, 3))]
        [(8, 8), (1, 10), (4, 6, 3)]
    """
    if pixels.ndim > 2:
        check_channels_last(pixels.shape[1:], "X")
        return pixels.shape[1:]
    count = pixels.shape[1]
    if image_shape is not None:
        shape = tuple(image_shape)
        if prod(shape) != count:
            raise ValueError(f"image_shape {shape} has {prod(shape)} pixels, but X has n_features={count}")
        check_channels_last(shape, f"X.reshape{(-1, *shape)}")
        return shape
    side = isqrt(count)
    return (side, side) if side * side == count and side > 1 else (1, count)


def check_channels_last(shape: tuple[int, ...], array: str) -> None:
    """Check that the last axis of images can be that of the channels.

    Args:
        shape: Shape of one image.
        array: Python expression of the array, for the error message.

    Raises:
        ValueError: If the channels seem to come first.
    """
    if len(shape) == 3 and shape[0] <= MAX_CHANNELS < shape[2]:
        raise ValueError(
            f"expected images (height, width, channels), got shape {shape}, where the channels seem to come first: "
            f"use {array}.transpose(0, 2, 3, 1)"
        )


def num_channels(shape: tuple[int, ...]) -> int:
    """Return the number of channels of an image.

    Args:
        shape: (H, W) or (H, W, C).

    Returns:
        C, or 1 for (H, W).
    """
    return shape[2] if len(shape) == 3 else 1


def is_wide_integer(pixels: np.ndarray) -> bool:
    """Whether pixels are integers of 32 or 64 bits, which do not tell the range of their values.

    Args:
        pixels: The array. Lists of integers become arrays of this kind.

    Returns:
        True for signed and unsigned integers of at least 32 bits.
    """
    return pixels.dtype.kind in "iu" and pixels.dtype.itemsize >= 4


def largest_magnitude(pixels: np.ndarray) -> int:
    """Return the largest value of integers that have to fit into a type together with negative ones.

    Args:
        pixels: An array of integers.

    Returns:
        The maximum of all values, where a negative value v counts as -v - 1: -128 fits where 127 does.
    """
    return max(int(pixels.max()), ~int(pixels.min()))


def find_max_value(pixels: np.ndarray) -> int | None:
    """Return the value by which pixels are divided to bring them to [0, 1].

    Args:
        pixels: An array of numbers.

    Returns:
        The largest value of integers of 8 and 16 bits; 1, 255 or 65535, whichever first covers all values, for wider
        integers; 1 for floating-point numbers in [0, 1]; None for other floating-point numbers.

    Raises:
        ValueError: If wide integers do not fit into 16 bits.

    Example:
        >>> [find_max_value(array) for array in (np.uint8([3]), np.int64([0, 1]), np.int64([0, 3]), np.array([0.5]))]
        [255, 1, 255, 1]
    """
    if pixels.dtype.kind in "iu":
        largest = largest_magnitude(pixels)
        if is_wide_integer(pixels) and largest > WIDE[-1]:
            raise ValueError(f"expected integers of at most 16 bits, got {largest} in X: divide X to [0, 1]")
        return full_scale(pixels.dtype, 0, largest)
    return 1 if pixels.min() >= 0 and pixels.max() <= 1 else None


@dataclass(frozen=True)
class ImageFormat:
    """The format of the arrays that an estimator was fitted on."""

    shape: tuple[int, ...]
    """Shape (H, W) or (H, W, C) of each image."""
    max_value: int | None
    """What integers of 32 and 64 bits are divided by. None leaves them unchanged."""

    @classmethod
    def of(cls, pixels: np.ndarray, image_shape: tuple[int, ...] | None = None) -> "ImageFormat":
        """Return the format of an array.

        Args:
            pixels: Images or rows of pixels.
            image_shape: See :func:`shape_of_images`.

        Returns:
            The format.
        """
        return cls(shape_of_images(pixels, image_shape), find_max_value(pixels))

    def to_tensor(self, pixels: np.ndarray, name: str) -> Float[Tensor, "count channels height width"]:
        """Convert an array to images for a network, after a check against this format.

        Images (n, H, W) and (n, H, W, C) may have another height and width, but not another number of channels.

        Args:
            pixels: Images or rows of pixels.
            name: Name of the estimator, for error messages.

        Returns:
            The images in float32, with channels first.

        Raises:
            ValueError: If the number of channels, or of pixels in a row, differs, or if integers are too large.
        """
        shape, max_value = self._shape_of(pixels, name), self._max_value_of(pixels, name)
        scaled = np.asarray(pixels, dtype=np.float32).reshape(len(pixels), *shape) / np.float32(max_value or 1)
        images = torch.from_numpy(scaled)
        return images.unsqueeze(1) if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()

    def _shape_of(self, pixels: np.ndarray, name: str) -> tuple[int, ...]:
        if pixels.ndim == 2:
            if (count := pixels.shape[1]) != prod(self.shape):
                # The checks of scikit-learn require the words of the first half.
                raise ValueError(
                    f"X has {count} features, but {name} is expecting {prod(self.shape)} features as input: "
                    f"images of shape {self.shape}"
                )
            return self.shape
        shape = pixels.shape[1:]
        if num_channels(shape) != num_channels(self.shape):
            check_channels_last(shape, "X")
            raise ValueError(
                f"{name} was fitted on images of shape {self.shape}, channels: {num_channels(self.shape)}; "
                f"got X of shape {pixels.shape}, channels: {num_channels(shape)}"
            )
        return shape

    def _max_value_of(self, pixels: np.ndarray, name: str) -> int | None:
        if not is_wide_integer(pixels):
            return find_max_value(pixels)
        if self.max_value is not None and (largest := largest_magnitude(pixels)) > self.max_value:
            raise ValueError(
                f"{name} was fitted on images in [0, {self.max_value}], got integers up to {largest}: "
                "divide X in the same way as the images of fit"
            )
        return self.max_value
