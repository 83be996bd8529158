"""The original MNIST, from any of the files in which it is distributed."""

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from tigranet.data.npz_file import read_npz
from tigranet.data.sources.source import ImagePool, Source, labelled_grey

SHA256 = "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16"
"""Checksum of the pixels and labels in the order of :class:`Mnist`. It does not depend on the file format."""

IDX_NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
"""Names of the four original files, uncompressed."""
IDX_FOLDERS = (".", "MNIST/raw", "mnist", "mnist/raw", "MNIST")
"""Where torchvision and others put the original files, relative to the data folder."""


class Mnist(NamedTuple):
    """60,000 training and 10,000 test digits."""

    train_images: UInt8[np.ndarray, "60000 28 28"]
    train_labels: UInt8[np.ndarray, "60000"]
    test_images: UInt8[np.ndarray, "10000 28 28"]
    test_labels: UInt8[np.ndarray, "10000"]


def find_mnist(folder: Path) -> list[Path]:
    """Find the files of MNIST in a data folder.

    Args:
        folder: The data folder.

    Returns:
        ``mnist.npz`` alone if it exists; else the four idx files, compressed or not, with a dash or a dot before
        ``idx``; an empty list if they are incomplete.
    """
    if (folder / "mnist.npz").is_file():
        return [folder / "mnist.npz"]
    for sub_folder in IDX_FOLDERS:
        files = [_first_existing([folder / sub_folder / name for name in _spellings(part)]) for part in IDX_NAMES]
        if all(files):
            return [path for path in files if path]
    return []


def load_mnist(folder: Path) -> Mnist:
    """Load MNIST from a data folder and verify its checksum.

    Args:
        folder: The data folder.

    Returns:
        All digits.

    Raises:
        FileNotFoundError: If MNIST is not in the folder.
        ValueError: If a file is damaged, or does not hold the original MNIST.
    """
    files = find_mnist(folder)
    if not files:
        raise FileNotFoundError(
            f"there is no MNIST in '{folder}' (mnist.npz, or {IDX_NAMES[0]}.gz and the other three): "
            f"'tigranet data fetch --data-dir {folder}' downloads it, or set TIGRANET_DATA to another folder"
        )
    try:
        mnist = _read_npz(files[0]) if len(files) == 1 else Mnist(*map(_read_idx, files))
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"'{files[0]}' is damaged: {error}; delete it and fetch it again") from None
    if checksum(mnist) != SHA256:
        raise ValueError(f"'{files[0]}' does not hold the original MNIST: delete it and fetch it again")
    return mnist


def checksum(arrays: tuple[np.ndarray, ...]) -> str:
    """Compute the SHA-256 checksum of the bytes of several arrays, in order.

    Args:
        arrays: The arrays.

    Returns:
        The checksum in hexadecimal digits.
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _first_existing(paths: list[Path]) -> Path | None:
    return next((path for path in paths if path.is_file()), None)


def _spellings(name: str) -> list[str]:
    dotted = name.replace("-idx", ".idx")
    return [name, f"{name}.gz", dotted, f"{dotted}.gz"]


def _read_npz(path: Path) -> Mnist:
    return Mnist(*read_npz(path, "x_train", "y_train", "x_test", "y_test").values())


def _read_idx(path: Path) -> np.ndarray:
    """Read an idx file: two zero bytes, the type (8 for bytes), the number of axes, their lengths, the data."""
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"'{path.name}' does not begin like an idx file of bytes")
    num_axes = content[3]
    shape = np.frombuffer(content, ">u4", num_axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * num_axes).reshape(shape).copy()  # PyTorch needs it writable


def _pool(folder: Path) -> ImagePool:
    mnist = load_mnist(folder)
    return ImagePool(
        labelled_grey(mnist.train_images, mnist.train_labels), labelled_grey(mnist.test_images, mnist.test_labels)
    )


MNIST = Source("MNIST", lambda folder: bool(find_mnist(folder)), _pool)
"""All digits of MNIST, with its own test set."""
