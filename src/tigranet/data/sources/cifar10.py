"""CIFAR-10 (Krizhevsky 2009): 60,000 colour photographs of 32x32 pixels, in 10 classes."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt8

from tigranet.data.image_errors import one_line
from tigranet.data.npz_file import open_npz
from tigranet.data.sources.array_checks import check_images, count_labels
from tigranet.data.sources.packed_files import read_packed_files
from tigranet.data.sources.pickled_arrays import unpickle_arrays
from tigranet.data.sources.source import ImagePool, Source, labelled_bytes

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIZE = 32
"""Side length in pixels."""
BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
"""The official files, without suffix. The last one has the test images."""
IMAGES_PER_BATCH = 10_000
TRAIN_IMAGES_PER_CLASS, TEST_IMAGES_PER_CLASS = 5_000, 1_000
MAX_BATCH_BYTES = 2**25
"""Largest size of an official file. The Python version has 31 million bytes."""
NPZ_NAME = "cifar10.npz"


class Cifar10(NamedTuple):
    """50,000 training and 10,000 test images, in the order of the official files."""

    train_images: UInt8[np.ndarray, "train 3 32 32"]
    train_labels: Int[np.ndarray, " train"]
    test_images: UInt8[np.ndarray, "test 3 32 32"]
    test_labels: Int[np.ndarray, " test"]


Batch = tuple[UInt8[np.ndarray, "images 3 32 32"], UInt8[np.ndarray, " images"]]
"""Images and labels of an official file."""


def _decode_binary(content: bytes) -> Batch:
    """Decode a file of records of 3,073 bytes: the label, then the rows of the red, green and blue image."""
    record = 1 + 3 * SIZE * SIZE
    if len(content) != IMAGES_PER_BATCH * record:
        raise ValueError(f"expected {IMAGES_PER_BATCH * record:,} bytes, got {len(content):,}")
    records = np.frombuffer(content, np.uint8).reshape(IMAGES_PER_BATCH, record)
    return records[:, 1:].reshape(-1, 3, SIZE, SIZE), records[:, 0]


def _decode_pickle(content: bytes) -> Batch:
    """Decode a pickled dictionary: the array ``data`` with one image per row, and the list ``labels``."""
    batch = unpickle_arrays(content)
    pixels, labels = batch.get(b"data"), batch.get(b"labels")
    shape = (IMAGES_PER_BATCH, 3 * SIZE * SIZE)
    if not isinstance(pixels, np.ndarray) or pixels.shape != shape:
        raise ValueError(f"expected an array 'data' of shape {shape}, got {getattr(pixels, 'shape', 'none')}")
    if not isinstance(labels, list) or len(labels) != IMAGES_PER_BATCH or not all(map(_is_label, labels)):
        raise ValueError(f"expected a list 'labels' of {IMAGES_PER_BATCH} numbers from 0 to {len(CLASSES) - 1}")
    return pixels.reshape(-1, 3, SIZE, SIZE), np.array(labels, np.uint8)


def _is_label(value: object) -> bool:
    return type(value) is int and 0 <= value < len(CLASSES)


class _Version(NamedTuple):
    """One of the two official versions: the same images in other files."""

    folder: str
    archive: str
    suffix: str
    decode: Callable[[bytes], Batch]

    @property
    def file_names(self) -> list[str]:
        """Names of the files with images."""
        return [f"{batch}{self.suffix}" for batch in BATCHES]


VERSIONS = (
    _Version("cifar-10-batches-bin", "cifar-10-binary.tar.gz", ".bin", _decode_binary),
    _Version("cifar-10-batches-py", "cifar-10-python.tar.gz", "", _decode_pickle),
)


def find_cifar10(folder: Path) -> Path | None:
    """Find CIFAR-10 in a data folder.

    Args:
        folder: The data folder.

    Returns:
        ``cifar10.npz``, else the folder of one of the official versions if all its files are there, else one of the
        official archives, else None.
    """
    complete = [
        folder / version.folder
        for version in VERSIONS
        if all((folder / version.folder / name).is_file() for name in version.file_names)
    ]
    archives = [folder / version.archive for version in VERSIONS]
    files = (path for path in (folder / NPZ_NAME, *complete, *archives) if path.exists())
    return next(files, None)


def load_cifar10(folder: Path) -> Cifar10:
    """Load CIFAR-10 from a data folder.

    Args:
        folder: The data folder.

    Returns:
        All images. Their order does not depend on the files that they come from.

    Raises:
        FileNotFoundError: If CIFAR-10 is not in the folder.
        ValueError: If a file is damaged, or images are missing or duplicated. Nothing in a file is run as code.
    """
    path = find_cifar10(folder)
    if path is None:
        archives = " or ".join(version.archive for version in VERSIONS)
        raise FileNotFoundError(
            f"there is no CIFAR-10 in '{folder}': put {archives} there, or its unpacked folder, or {NPZ_NAME} with the "
            "arrays x_train, y_train, x_test and y_test, or set TIGRANET_DATA to another folder"
        )
    cifar = _read_npz(path) if path.name == NPZ_NAME else _read_batches(path)
    for labels, expected in ((cifar.train_labels, TRAIN_IMAGES_PER_CLASS), (cifar.test_labels, TEST_IMAGES_PER_CLASS)):
        sizes = count_labels("CIFAR-10", path, labels, len(CLASSES))
        if sizes != [expected] * len(CLASSES):
            raise ValueError(
                f"expected {TRAIN_IMAGES_PER_CLASS} training and {TEST_IMAGES_PER_CLASS} test images of each of the "
                f"{len(CLASSES)} classes, got {', '.join(map(str, sizes))} instead of {expected} each in '{path}': "
                "images are missing or duplicated"
            )
    return cifar


def _read_npz(path: Path) -> Cifar10:
    """Read images with the channels last, part by part, so that there are never two copies of all images."""
    parts: list[np.ndarray] = []
    with open_npz(path) as arrays:
        for part, per_class in (("train", TRAIN_IMAGES_PER_CLASS), ("test", TEST_IMAGES_PER_CLASS)):
            count = per_class * len(CLASSES)
            check_images("CIFAR-10", path, arrays.header(f"x_{part}"), (count, SIZE, SIZE, 3))
            images = np.empty((count, 3, SIZE, SIZE), np.uint8)
            start = 0
            for block in arrays.blocks(f"x_{part}"):
                images[start : start + len(block)] = block.transpose(0, 3, 1, 2)
                start += len(block)
            parts += [images, arrays.read(f"y_{part}").reshape(-1)]
    return Cifar10(*parts)


def _read_batches(path: Path) -> Cifar10:
    version = next(version for version in VERSIONS if path.name in (version.folder, version.archive))
    names = version.file_names
    images = np.empty((len(BATCHES), IMAGES_PER_BATCH, 3, SIZE, SIZE), np.uint8)
    labels = np.empty((len(BATCHES), IMAGES_PER_BATCH), np.uint8)
    try:
        for name, content in read_packed_files(path, names, MAX_BATCH_BYTES):
            number = names.index(name)
            try:
                images[number], labels[number] = version.decode(content)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
    except (ValueError, OSError) as error:
        raise ValueError(f"'{path}' cannot be read as CIFAR-10: {one_line(str(error))}: download it again") from None
    return Cifar10(images[:-1].reshape(-1, 3, SIZE, SIZE), labels[:-1].reshape(-1), images[-1], labels[-1])


def _pool(folder: Path) -> ImagePool:
    cifar = load_cifar10(folder)
    return ImagePool(
        labelled_bytes(cifar.train_images, cifar.train_labels), labelled_bytes(cifar.test_images, cifar.test_labels)
    )


CIFAR10 = Source("CIFAR-10", lambda folder: find_cifar10(folder) is not None, _pool)
"""All images of CIFAR-10, with its own test set."""
