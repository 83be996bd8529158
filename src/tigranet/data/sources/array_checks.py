"""Checks of the images and labels of a published data set."""

from pathlib import Path

import numpy as np

from tigranet.data.npz_file import ArrayHeader


def check_images(title: str, file: Path, images: np.ndarray | ArrayHeader, shape: tuple[int, ...]) -> None:
    """Check the type and shape of images.

    Args:
        title: Name of the data set, for the error message.
        file: The file that they come from, for the error message.
        images: The images, or the header of their array.
        shape: Expected shape.

    Raises:
        ValueError: If the images are not bytes of this shape.
    """
    if images.dtype != np.uint8 or images.shape != shape:
        raise ValueError(
            f"expected {title} as uint8 of shape {shape}, got {images.dtype} of shape {images.shape} in '{file}'"
        )


def count_labels(title: str, file: Path, labels: np.ndarray, num_classes: int) -> list[int]:
    """Check labels and count them.

    Args:
        title: Name of the data set, for the error message.
        file: The file that they come from, for the error message.
        labels: Labels of the images.
        num_classes: Number of classes.

    Returns:
        Number of images of each class.

    Raises:
        ValueError: If the labels are not a list of whole numbers from 0 to ``num_classes - 1``.

    Example:
        >>> count_labels("digits", Path("digits.npz"), np.array([0, 2, 2]), 3)
        [1, 0, 2]
    """
    expected = f"expected labels of {title} from 0 to {num_classes - 1}"
    if labels.ndim != 1 or not labels.size or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"{expected}, one per image, got {labels.dtype} of shape {labels.shape} in '{file}'")
    if labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(f"{expected}, got {labels.min()} to {labels.max()} in '{file}'")
    counts: list[int] = np.bincount(labels.astype(np.int64), minlength=num_classes).tolist()
    return counts
