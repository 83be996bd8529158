"""The original MNIST, from whatever files of it are at hand."""

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from tigranet.data.npz_file import read_npz

SHA256 = "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16"
"""Of the pixels and labels themselves, in the order of :class:`Mnist`: the same for every way to store them."""

PARTS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
FOLDERS = (".", "MNIST/raw", "mnist", "mnist/raw", "MNIST")


class Mnist(NamedTuple):
    """60,000 training and 10,000 test digits."""

    train_images: UInt8[np.ndarray, "60000 28 28"]
    train_labels: UInt8[np.ndarray, "60000"]
    test_images: UInt8[np.ndarray, "10000 28 28"]
    test_labels: UInt8[np.ndarray, "10000"]


def find_mnist(folder: Path) -> list[Path]:
    """The files that hold MNIST in ``folder``: ``mnist.npz``, or the four idx files, packed or not, with a
    dash or a dot before ``idx``, where torchvision and others put them; none if there are not all."""
    if (folder / "mnist.npz").is_file():
        return [folder / "mnist.npz"]
    for place in FOLDERS:
        found = [_first([folder / place / name for name in _spellings(part)]) for part in PARTS]
        if all(found):
            return [path for path in found if path]
    return []


def load_mnist(folder: Path) -> Mnist:
    """MNIST from the files in ``folder``, checked to be MNIST."""
    files = find_mnist(folder)
    if not files:
        raise FileNotFoundError(
            f"there is no MNIST in '{folder}' (mnist.npz, or {PARTS[0]}.gz and the other three): "
            f"'tigranet data fetch --data-dir {folder}' downloads it; TIGRANET_DATA names another folder"
        )
    try:
        mnist = _read_npz(files[0]) if len(files) == 1 else Mnist(*map(_read_idx, files))
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"'{files[0]}' is no whole MNIST file: {error}; delete it and fetch it again") from None
    if checksum(mnist) != SHA256:
        raise ValueError(f"'{files[0]}' does not hold the original MNIST: delete it and fetch it again")
    return mnist


def checksum(arrays: tuple[np.ndarray, ...]) -> str:
    """SHA-256 of the bytes of ``arrays``, one after the other."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _first(paths: list[Path]) -> Path | None:
    return next((path for path in paths if path.is_file()), None)


def _spellings(part: str) -> list[str]:
    dotted = part.replace("-idx", ".idx")
    return [part, f"{part}.gz", dotted, f"{dotted}.gz"]


def _read_npz(path: Path) -> Mnist:
    return Mnist(*read_npz(path, "x_train", "y_train", "x_test", "y_test").values())


def _read_idx(path: Path) -> np.ndarray:
    """The idx format: two zero bytes, the type (8: bytes), the number of axes, their sizes, the data."""
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"'{path.name}' does not begin as an idx file of bytes")
    axes = content[3]
    shape = np.frombuffer(content, ">u4", axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)
