"""Rotated MNIST with 12,000 training images (Larochelle et al. 2007), from the original files or drawn from MNIST.

The authors joined the 60,000 training and 10,000 test digits of MNIST, drew 12,000 of them for training and validation
and 50,000 for testing, and rotated each digit by its own random angle. Without their files, the same is done here.
"""

from pathlib import Path

import numpy as np
import torch

from tigranet.data.dataset import LabelledImages
from tigranet.data.image_errors import one_line
from tigranet.data.regular_file import open_regular_file
from tigranet.data.sources.mnist import find_mnist, load_mnist
from tigranet.data.sources.source import ImagePool, Source, labelled_bytes

FILE_NAMES = (
    "mnist_all_rotation_normalized_float_train_valid.amat",
    "mnist_all_rotation_normalized_float_test.amat",
)
"""The original files: training and validation images, in this order, and test images."""
FOLDERS = (".", "mnist_rotation_new")
"""Where they are, relative to the data folder. The second is the name of the original archive."""
IMAGES_PER_FILE = (12_000, 50_000)
SIZE = 28
"""Side length in pixels."""


def find_rotated_mnist(folder: Path) -> list[Path]:
    """Find the original files in a data folder.

    Args:
        folder: The data folder.

    Returns:
        The two files, or an empty list if they are incomplete.
    """
    for sub_folder in FOLDERS:
        files = [folder / sub_folder / name for name in FILE_NAMES]
        if all(path.is_file() for path in files):
            return files
    return []


def load_rotated_mnist(folder: Path) -> LabelledImages:
    """Load the original files from a data folder.

    Args:
        folder: The data folder.

    Returns:
        10,000 training, 2,000 validation and 50,000 test images, in this order.

    Raises:
        FileNotFoundError: If the files are not in the folder.
        ValueError: If a file is damaged, or images are missing.
    """
    files = find_rotated_mnist(folder)
    if not files:
        raise FileNotFoundError(
            f"there is no rotated MNIST in '{folder}': put {' and '.join(FILE_NAMES)} there, or set TIGRANET_DATA to "
            "another folder"
        )
    parts = [_read_amat(path, count) for path, count in zip(files, IMAGES_PER_FILE, strict=True)]
    return LabelledImages(*(torch.cat(tensors) for tensors in zip(*(part[:2] for part in parts), strict=True)))


def _read_amat(path: Path, count: int) -> LabelledImages:
    """Read a text file with one image per line: 784 pixels, column by column, and the label."""
    try:
        with open_regular_file(path) as file:
            table = np.loadtxt(file, np.float32, max_rows=count + 1, ndmin=2)
    except (ValueError, OSError) as error:
        raise ValueError(f"'{path}' cannot be read as rotated MNIST: {one_line(str(error))}") from None
    shape = (count, SIZE * SIZE + 1)
    if table.shape != shape:
        lines = f"more than {count}" if len(table) > count else len(table)
        raise ValueError(
            f"expected {shape[0]} lines of {shape[1]} numbers, got {lines} of {table.shape[1]} in '{path}'"
        )
    pixels, labels = table[:, :-1], table[:, -1]
    if not ((pixels >= 0) & (pixels <= 1)).all() or not np.isin(labels, range(10)).all():
        raise ValueError(f"expected pixels from 0 to 1 and labels from 0 to 9, got other numbers in '{path}'")
    images = np.ascontiguousarray(pixels.reshape(-1, 1, SIZE, SIZE).swapaxes(2, 3))
    return LabelledImages(torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64)))


def _original_pool(folder: Path) -> ImagePool:
    return ImagePool(load_rotated_mnist(folder), is_drawn=True)


def _pool(folder: Path) -> ImagePool:
    if find_rotated_mnist(folder):
        return _original_pool(folder)
    mnist = load_mnist(folder)
    images = np.concatenate([mnist.train_images, mnist.test_images])
    return ImagePool(labelled_bytes(images[:, None], np.concatenate([mnist.train_labels, mnist.test_labels])))


ROTATED_MNIST = Source("rotated MNIST", lambda folder: bool(find_rotated_mnist(folder)), _original_pool)
"""The original files."""
ROTATED_MNIST_OR_MNIST = Source("MNIST", lambda folder: bool(find_rotated_mnist(folder) or find_mnist(folder)), _pool)
"""The original files if they are there, else all 70,000 upright digits of MNIST."""
