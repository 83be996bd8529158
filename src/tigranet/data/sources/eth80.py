"""ETH-80 (Leibe & Schiele 2003): 41 views of each of 80 objects, in 8 classes."""

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int, UInt8

from tigranet.data.dataset import LabelledImages
from tigranet.data.luminance import luminance
from tigranet.data.npz_file import read_npz
from tigranet.data.sources.published_files import PublishedFiles, read_resized
from tigranet.data.sources.source import ImagePool, Source

CLASSES = ("apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato")
SIZE = 50
"""Side length in pixels to which the original images are resized."""
OBJECTS_PER_CLASS, VIEWS_PER_OBJECT = 10, 41
FILES = PublishedFiles(
    title="ETH-80",
    npz_name="eth80.npz",
    pattern="[eE][tT][hH]*80*/**/*.png",
    # class and object, elevation, azimuth, as in apple1-066-063.png
    file_name=re.compile(rf"({'|'.join(CLASSES)})(\d+)-(\d+)-(\d+)\.png"),
    folder_example="eth80-cropped256",
)


class Eth80(NamedTuple):
    """All views, in colour."""

    images: UInt8[np.ndarray, "views 50 50 3"]
    """Pixels."""
    labels: Int[np.ndarray, " views"]
    """Positions in ``CLASSES``."""
    objects: Int[np.ndarray, " views"]
    """Number of the object in each view, from 0 to 79."""


def load_eth80(folder: Path) -> Eth80:
    """Load ETH-80 from a data folder.

    Args:
        folder: The data folder.

    Returns:
        The views. From the original files, they are sorted by class, object, elevation and azimuth.

    Raises:
        FileNotFoundError: If ETH-80 is not in the folder.
        ValueError: If a file is damaged, or views are missing or duplicated.
    """
    files = FILES.require(folder)
    views = _read_npz(files[0]) if files[0].suffix == ".npz" else _read_png(files)
    FILES.check_images(files[0], views.images, (len(views.labels), SIZE, SIZE, 3))
    per_class = OBJECTS_PER_CLASS * VIEWS_PER_OBJECT
    num_objects = len(set(views.objects.tolist()))
    class_sizes = np.bincount(views.labels, minlength=len(CLASSES)).tolist()
    if class_sizes != [per_class] * len(CLASSES) or num_objects != OBJECTS_PER_CLASS * len(CLASSES):
        raise ValueError(
            f"expected {per_class * len(CLASSES)} views of {OBJECTS_PER_CLASS * len(CLASSES)} objects, {per_class} per "
            f"class, got {len(views.labels)} views of {num_objects} objects in '{files[0].parent}': files are missing "
            "or duplicated"
        )
    return views


def _read_npz(path: Path) -> Eth80:
    images, labels, numbers = read_npz(path, "images", "label", "object_id").values()
    labels = labels.astype(np.int64)
    _, objects = np.unique(labels * 1000 + numbers, return_inverse=True)
    return Eth80(images, labels, objects)


def _read_png(files: list[Path]) -> Eth80:
    from PIL import Image

    views = []
    for path in files:
        name, number, elevation, azimuth = FILES.parse_name(path)
        views.append((CLASSES.index(name), int(number), int(elevation), int(azimuth), path))
    views.sort()
    images = read_resized([view[-1] for view in views], "RGB", SIZE, Image.Resampling.LANCZOS)
    labels = np.array([view[0] for view in views])
    _, objects = np.unique([view[0] * 1000 + view[1] for view in views], return_inverse=True)
    return Eth80(images, labels, objects)


def _color_pool(folder: Path) -> ImagePool:
    views = load_eth80(folder)
    images = torch.from_numpy(views.images).permute(0, 3, 1, 2).float() / 255
    return ImagePool(LabelledImages(images, torch.from_numpy(views.labels)), objects=torch.from_numpy(views.objects))


def _grey_pool(folder: Path) -> ImagePool:
    pool = _color_pool(folder)
    return pool._replace(images=pool.images._replace(images=luminance(pool.images.images)))


ETH80 = Source("ETH-80", lambda folder: bool(FILES.find(folder)), _grey_pool)
"""Views in grey."""
ETH80_COLOR = replace(ETH80, load_pool=_color_pool)
"""Views in colour."""
