"""Images and labels in one .npz file, as NumPy saves them."""

from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.image_io import LUMINANCE
from tigranet.data.letterbox import LARGEST_SIDE, letterbox
from tigranet.data.npz_file import read_npz
from tigranet.data.value_range import CURE, full_scale

IMAGES = ("images", "image", "x", "data", "arr_0")
LABELS = ("labels", "label", "y", "targets", "arr_1")
NAMES = ("class_names", "classes", "label_names")
"""Of numbers that are too wide for their type to tell."""
AFFIXES = {"train": ("train",), "validation": ("val", "valid", "validation"), "test": ("test",)}


@dataclass(frozen=True)
class NpzImages:
    """All images of the file, and for each its class, its part ('' where that is to be drawn) and its group."""

    class_names: tuple[str, ...]
    images: Float[Tensor, "count channels size size"]
    labels: tuple[int, ...]
    parts: tuple[str, ...]
    groups: tuple[str, ...] | None = None


def read_npz_images(file: Path, size: int | None = None, color: bool = False, group: str | None = None) -> NpzImages:
    """NpzImages ``images`` (n, H, W) or (n, H, W, C) and ``labels``, by these names or others in use (``x``, ``y``), or
    the same for each part (``x_train``, ``train_images``, ...). ``class_names`` is optional; ``group`` names the array
    with the group of each image. Whole numbers of 8 and 16 bits are divided by the largest of their type; wider ones
    by the first of 1, 255 and 65535 that none exceeds. All images are brought to one size, as files are."""
    arrays = {name.lower(): array for name, array in read_npz(file).items()}
    parts = {"": _pair(file, arrays)} if any(name in arrays for name in IMAGES) else {}
    for part, affixes in AFFIXES.items():
        for affix in affixes:
            inside = {
                name.removeprefix(f"{affix}_").removesuffix(f"_{affix}"): array
                for name, array in arrays.items()
                if name.startswith(f"{affix}_") or name.endswith(f"_{affix}")
            }
            if inside and not parts.get(""):
                parts[part] = _pair(file, inside)
    if not parts or ("" not in parts and "train" not in parts):
        raise ValueError(f"'{file}' has no array 'images' or 'x_train', it has: {', '.join(arrays) or 'none'}")
    labels = np.concatenate([part[1] for part in parts.values()])
    found, numbers = np.unique(labels, return_inverse=True)
    if len(found) < 2:
        raise ValueError(f"a classifier needs at least 2 classes, '{file}' has {len(found)}")
    groups = None
    if group is not None:
        if group.lower() not in arrays or arrays[group.lower()].shape[:1] != labels.shape:
            raise ValueError(f"'{file}' has no array '{group}' with one group an image")
        groups = tuple(map(str, arrays[group.lower()]))
    return NpzImages(
        _names(file, arrays, found),
        _as_images(file, [part[0] for part in parts.values()], size, color),
        tuple(numbers.tolist()),
        tuple(name for name, part in parts.items() for _ in range(len(part[1]))),
        groups,
    )


def _pair(file: Path, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    images, labels = (next((arrays[name] for name in names if name in arrays), None) for names in (IMAGES, LABELS))
    if images is None or labels is None:
        missing = "images" if images is None else "labels"
        raise ValueError(f"'{file}' has no array '{missing}', it has: {', '.join(arrays)}")
    labels = labels.reshape(-1)
    wanted = images.ndim in (3, 4) and images.size and images.dtype.kind in "iufb"
    if not wanted or len(images) != len(labels):
        shapes = f"{images.dtype} {images.shape} and {len(labels)} labels"
        raise ValueError(f"images are numbers (n, H, W) or (n, H, W, C) with n labels, '{file}' has {shapes}")
    return images, labels


def _names(file: Path, arrays: dict[str, np.ndarray], found: np.ndarray) -> tuple[str, ...]:
    """Of the labels that were ``found``: whole numbers have those of the file, if it has any."""
    given = next((arrays[name].reshape(-1) for name in NAMES if name in arrays), None)
    if given is None or found.dtype.kind not in "iu":
        return tuple(map(str, found))
    if found[0] < 0 or found[-1] >= len(given):
        raise ValueError(
            f"labels are 0 .. {len(given) - 1} where there are {len(given)} class_names, "
            f"those of '{file}' are {found[0]} .. {found[-1]}: count them from 0, or leave out class_names"
        )
    return tuple(str(given[label]) for label in found)


def _as_images(file: Path, parts: list[np.ndarray], size: int | None, color: bool) -> Tensor:
    scaled = [pixels if color else _grey(pixels) for pixels in _in_unit_range(file, parts)]
    channels = sorted({pixels.shape[-1] for pixels in scaled})
    if len(channels) > 1:
        raise ValueError(f"images of '{file}' have {channels[0]} channels, others {channels[-1]}: leave out --color")
    sides = [max(pixels.shape[1:3]) for pixels in scaled for _ in pixels]
    size = size or max(2, min(LARGEST_SIDE, round(median(sides))))
    images = [
        pixels if pixels.shape[1:3] == (size, size) else np.stack([letterbox(image, size) for image in pixels])
        for pixels in scaled
    ]
    return torch.from_numpy(np.ascontiguousarray(np.concatenate(images).transpose(0, 3, 1, 2)))


def _in_unit_range(file: Path, parts: list[np.ndarray]) -> list[np.ndarray]:
    """(n, H, W, C) in [0, 1]. What is white is one number for all parts of a type."""
    whole = [images for images in parts if images.dtype.kind in "iu"]
    lowest = min((int(images.min()) for images in whole), default=0)
    largest = max((int(images.max()) for images in whole), default=0)
    if lowest < 0:
        raise ValueError(
            f"whole numbers of images are not below 0, '{file}' has {lowest}: shift them to 0, then {CURE}"
        )
    scaled = []
    for images in parts:
        try:
            over = full_scale(images.dtype, lowest, largest) if images.dtype.kind in "iu" else 1
        except ValueError as error:
            raise ValueError(f"'{file}' {error}") from None
        pixels = images.astype(np.float32) / np.float32(over)
        if not np.isfinite(pixels).all() or pixels.min() < 0 or pixels.max() > 1:
            raise ValueError(
                f"floating-point images are in [0, 1], those of '{file}' are not: divide them by their largest"
            )
        scaled.append(pixels if pixels.ndim == 4 else pixels[..., None])
    return scaled


def _grey(pixels: np.ndarray) -> np.ndarray:
    if pixels.shape[-1] == 1:
        return pixels
    return pixels @ LUMINANCE[:, None] if pixels.shape[-1] == 3 else pixels.mean(-1, keepdims=True)
