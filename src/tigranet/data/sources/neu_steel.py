"""NEU surface defects (Song & Yan 2013): hot-rolled steel strip, 300 images of each of 6 kinds of defects."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt8

from tigranet.data.npz_file import read_npz
from tigranet.data.sources.published_files import PublishedFiles, read_resized
from tigranet.data.sources.source import ImagePool, Source, labelled_grey

CLASSES = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")
PREFIXES = ("Cr", "In", "Pa", "PS", "RS", "Sc")
"""How the original file names start, in the order of ``CLASSES``."""
SIZE = 64
"""Side length in pixels to which the original images are resized."""
IMAGES_PER_CLASS = 300
FILES = PublishedFiles(
    title="NEU steel defects",
    npz_name="neu_steel64.npz",
    pattern="[nN][eE][uU]*/**/*_*.*",
    # class and number, as in Cr_17.bmp
    file_name=re.compile(rf"({'|'.join(PREFIXES)})_(\d+)\.(?:bmp|jpg|png)"),
    folder_example="NEU-CLS",
)


class NeuSteel(NamedTuple):
    """All images, in grey."""

    images: UInt8[np.ndarray, "images 64 64"]
    """Pixels."""
    labels: Int[np.ndarray, " images"]
    """Positions in ``CLASSES``."""


def load_neu_steel(folder: Path) -> NeuSteel:
    """Load the NEU defects from a data folder.

    Args:
        folder: The data folder.

    Returns:
        The images. From the original files, they are sorted by class and number.

    Raises:
        FileNotFoundError: If the defects are not in the folder.
        ValueError: If a file is damaged, or images are missing or duplicated.
    """
    files = FILES.require(folder)
    steel = _read_npz(files[0]) if files[0].suffix == ".npz" else _read_images(files)
    FILES.check_images(files[0], steel.images, (len(steel.labels), SIZE, SIZE))
    class_sizes = np.bincount(steel.labels, minlength=len(CLASSES)).tolist()
    if class_sizes != [IMAGES_PER_CLASS] * len(CLASSES):
        raise ValueError(
            f"expected {IMAGES_PER_CLASS} images of each of the {len(CLASSES)} defects, got "
            f"{', '.join(map(str, class_sizes))} in '{files[0].parent}': files are missing or duplicated"
        )
    return steel


def _read_npz(path: Path) -> NeuSteel:
    images, labels = read_npz(path, "images", "label").values()
    return NeuSteel(images, labels.astype(np.int64))


def _read_images(files: list[Path]) -> NeuSteel:
    from PIL import Image

    entries = []
    for path in files:
        prefix, number = FILES.parse_name(path)
        entries.append((PREFIXES.index(prefix), int(number), path))
    entries.sort()
    images = read_resized([path for *_, path in entries], "L", SIZE, Image.Resampling.BOX)
    return NeuSteel(images, np.array([label for label, *_ in entries]))


NEU_STEEL = Source(
    "NEU steel",
    lambda folder: bool(FILES.find(folder)),
    lambda folder: ImagePool(labelled_grey(*load_neu_steel(folder))),
)
"""All images of defects."""
