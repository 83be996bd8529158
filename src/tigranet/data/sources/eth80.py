"""ETH-80 (Leibe & Schiele 2003): 80 objects of 8 classes, 41 views each."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt8

from tigranet.data.npz_file import read_npz

CLASSES = ("apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato")
SIZE = 50
VIEWS = re.compile(rf"({'|'.join(CLASSES)})(\d+)-(\d+)-(\d+)\.png")
"""The original names: class and object, elevation, azimuth, as in ``apple1-066-063.png``."""


class Eth80(NamedTuple):
    """All views, in colour, 50 x 50."""

    images: UInt8[np.ndarray, "views 50 50 3"]
    labels: Int[np.ndarray, " views"]
    objects: Int[np.ndarray, " views"]
    """A number for each of the 80 objects."""


def find_eth80(folder: Path) -> list[Path]:
    """``eth80.npz``, or the original PNG files somewhere below a folder called eth80...; none if neither is there."""
    if (folder / "eth80.npz").is_file():
        return [folder / "eth80.npz"]
    return sorted(path for path in folder.glob("[eE][tT][hH]*80*/**/*.png") if VIEWS.fullmatch(path.name))


def load_eth80(folder: Path) -> Eth80:
    """ETH-80 from the files in ``folder``, views in the order of class, object, elevation and azimuth."""
    files = find_eth80(folder)
    if not files:
        raise FileNotFoundError(
            f"there is no ETH-80 in '{folder}': put eth80.npz there, or the folder of its original PNG files "
            "(eth80-cropped256 or the like); TIGRANET_DATA names another folder"
        )
    eth80 = _read_npz(files[0]) if files[0].suffix == ".npz" else _read_png(files)
    if eth80.images.dtype != np.uint8 or eth80.images.shape != (len(eth80.labels), SIZE, SIZE, 3):
        raise ValueError(
            f"ETH-80 has bytes of shape {(len(eth80.labels), SIZE, SIZE, 3)} for as many labels; '{files[0]}' has "
            f"{eth80.images.dtype} of shape {eth80.images.shape}"
        )
    if len(eth80.labels) != 3280 or np.bincount(eth80.labels).tolist() != [410] * 8 or len(set(eth80.objects)) != 80:
        raise ValueError(
            f"ETH-80 has 3280 views, 410 a class, of 80 objects; '{files[0].parent}' has {len(eth80.labels)} "
            f"of {len(set(eth80.objects.tolist()))}: files are missing or there twice"
        )
    return eth80


def _read_npz(path: Path) -> Eth80:
    images, labels, numbers = read_npz(path, "images", "label", "object_id").values()
    labels = labels.astype(np.int64)
    _, objects = np.unique(labels * 1000 + numbers, return_inverse=True)
    return Eth80(images, labels, objects)


def _read_png(files: list[Path]) -> Eth80:
    from PIL import Image

    views = []
    for path in files:
        match = VIEWS.fullmatch(path.name)
        assert match is not None
        name, number, elevation, azimuth = match.groups()
        views.append((CLASSES.index(name), int(number), int(elevation), int(azimuth), path))
    images = []
    for *_, path in sorted(views):
        with Image.open(path) as image:
            images.append(np.asarray(image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.LANCZOS)))
    labels = np.array([view[0] for view in sorted(views)])
    _, objects = np.unique([view[0] * 1000 + view[1] for view in sorted(views)], return_inverse=True)
    return Eth80(np.stack(images), labels, objects)
