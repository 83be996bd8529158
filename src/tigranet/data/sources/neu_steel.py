"""NEU surface defects (Song & Yan 2013): hot-rolled steel strip, 6 kinds of defects, 300 images of each."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt8

from tigranet.data.npz_file import read_npz

CLASSES = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")
SIZE = 64
PREFIXES = ("Cr", "In", "Pa", "PS", "RS", "Sc")
FILES = re.compile(rf"({'|'.join(PREFIXES)})_(\d+)\.(?:bmp|jpg|png)")
"""The original names: class and number, as in ``Cr_17.bmp``."""


class NeuSteel(NamedTuple):
    """All images, grey, 64 x 64."""

    images: UInt8[np.ndarray, "images 64 64"]
    labels: Int[np.ndarray, " images"]


def find_neu_steel(folder: Path) -> list[Path]:
    """``neu_steel64.npz``, or the original files somewhere below a folder called NEU...; none if neither is there."""
    if (folder / "neu_steel64.npz").is_file():
        return [folder / "neu_steel64.npz"]
    return sorted(path for path in folder.glob("[nN][eE][uU]*/**/*_*.*") if FILES.fullmatch(path.name))


def load_neu_steel(folder: Path) -> NeuSteel:
    """The defects from the files in ``folder``, in the order of class and number."""
    files = find_neu_steel(folder)
    if not files:
        raise FileNotFoundError(
            f"there are no NEU steel defects in '{folder}': put neu_steel64.npz there, or the folder of the original "
            "files (NEU-CLS or the like); TIGRANET_DATA names another folder"
        )
    steel = _read_npz(files[0]) if files[0].suffix == ".npz" else _read_images(files)
    if steel.images.dtype != np.uint8 or steel.images.shape != (len(steel.labels), SIZE, SIZE):
        raise ValueError(
            f"the defects are bytes of shape {(len(steel.labels), SIZE, SIZE)} for as many labels; '{files[0]}' has "
            f"{steel.images.dtype} of shape {steel.images.shape}"
        )
    if np.bincount(steel.labels, minlength=6).tolist() != [300] * 6:
        raise ValueError(
            f"there are 300 images of each of the 6 defects; '{files[0].parent}' has "
            f"{', '.join(map(str, np.bincount(steel.labels, minlength=6)))}: files are missing or there twice"
        )
    return steel


def _read_npz(path: Path) -> NeuSteel:
    images, labels = read_npz(path, "images", "label").values()
    return NeuSteel(images, labels.astype(np.int64))


def _read_images(files: list[Path]) -> NeuSteel:
    from PIL import Image

    named = []
    for path in files:
        match = FILES.fullmatch(path.name)
        assert match is not None
        named.append((PREFIXES.index(match[1]), int(match[2]), path))
    images = []
    for *_, path in sorted(named):
        with Image.open(path) as image:
            images.append(np.asarray(image.convert("L").resize((SIZE, SIZE), Image.Resampling.BOX)))
    return NeuSteel(np.stack(images), np.array([label for label, *_ in sorted(named)]))
