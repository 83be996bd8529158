"""Images and labels in one .npz file, as NumPy saves them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.framed import LARGEST_SIDE, framed
from tigranet.data.image_file import LUMINANCE
from tigranet.data.npz import read_npz

IMAGES = ("images", "image", "x", "data", "arr_0")
LABELS = ("labels", "label", "y", "targets", "arr_1")
NAMES = ("class_names", "classes", "label_names")
AFFIXES = {"train": ("train",), "validation": ("val", "valid", "validation"), "test": ("test",)}


@dataclass(frozen=True)
class Arrays:
    """All images of the file, and for each its class, its part ('' where that is to be drawn) and its group."""

    class_names: tuple[str, ...]
    images: Float[Tensor, "count channels size size"]
    labels: tuple[int, ...]
    parts: tuple[str, ...]
    groups: tuple[str, ...] | None = None


def read_arrays(file: Path, size: int | None = None, color: bool = False, group: str | None = None) -> Arrays:
    """Arrays ``images`` (n, H, W) or (n, H, W, C) and ``labels``, by these names or others in use (``x``, ``y``), or
    the same for each part (``x_train``, ``train_images``, ...). ``class_names`` is optional; ``group`` names the array
    with the group of each image. Whole numbers are divided by the largest of their type."""
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
    given = next((arrays[name] for name in NAMES if name in arrays), None)
    names = [str(given[value]) if given is not None and labels.dtype.kind in "iu" else str(value) for value in found]
    groups = None
    if group is not None:
        if group.lower() not in arrays or len(arrays[group.lower()]) != len(labels):
            raise ValueError(f"'{file}' has no array '{group}' with one group an image")
        groups = tuple(map(str, arrays[group.lower()]))
    images = [_as_images(file, part[0], size, color) for part in parts.values()]
    return Arrays(
        tuple(names),
        torch.cat(images),
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
    if len(images) != len(labels) or images.ndim not in (3, 4) or images.dtype.kind not in "iufb":
        shapes = f"{images.dtype} {images.shape} and {len(labels)} labels"
        raise ValueError(f"images are numbers (n, H, W) or (n, H, W, C) with n labels, '{file}' has {shapes}")
    return images, labels


def _as_images(file: Path, images: np.ndarray, size: int | None, color: bool) -> Tensor:
    images = images if images.ndim == 4 else images[..., None]
    largest = np.iinfo(images.dtype).max if images.dtype.kind in "iu" else 1
    pixels = images.astype(np.float32) / np.float32(largest)
    if not np.isfinite(pixels).all() or pixels.min() < 0 or pixels.max() > 1:
        raise ValueError(
            f"floating-point images are in [0, 1], those of '{file}' are not: divide them by their largest"
        )
    if not color and pixels.shape[-1] > 1:
        pixels = pixels @ LUMINANCE[:, None] if pixels.shape[-1] == 3 else pixels.mean(-1, keepdims=True)
    size = size or max(2, min(LARGEST_SIDE, max(pixels.shape[1:3])))
    if pixels.shape[1:3] != (size, size):
        pixels = np.stack([framed(image, size) for image in pixels])
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))
