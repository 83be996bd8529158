"""Images and labels of a user in one .npz file."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.image_index import PART_NAMES
from tigranet.data.letterbox import default_size, letterbox
from tigranet.data.luminance import array_to_grey
from tigranet.data.npz_file import read_npz
from tigranet.data.value_range import CURE, full_scale

IMAGE_NAMES = ("images", "image", "x", "data", "arr_0")
LABEL_NAMES = ("labels", "label", "y", "targets", "arr_1")
CLASS_NAMES = ("class_names", "classes", "label_names")


@dataclass(frozen=True)
class NpzImages:
    """The images of an .npz file with the label, part and group of each."""

    class_names: tuple[str, ...]
    """Names of the classes."""
    images: Float[Tensor, "count channels size size"]
    """Pixels in [0, 1]."""
    labels: tuple[int, ...]
    """Positions in ``class_names``."""
    parts: tuple[str, ...]
    """'train', 'validation' or 'test'; '' if the file does not assign a part, so that it is drawn at random."""
    groups: tuple[str, ...] | None = None
    """Names of groups. Images of one group never go to different parts."""


def read_npz_images(file: Path, size: int | None = None, color: bool = False, group: str | None = None) -> NpzImages:
    """Read images and labels from an .npz file.

    The file has the arrays ``images`` and ``labels``, or other names in common use (``x``, ``y``); or such a pair for
    each part (``x_train`` and ``y_train``, ``train_images`` and ``train_labels``, ...). The array ``class_names`` is
    optional. Integers of 8 and 16 bits are divided by the largest value of their type, wider integers by the first of
    1, 255 and 65535 that no pixel exceeds. Images are brought to one square size as files are.

    Args:
        file: Path of the file.
        size: Side length in pixels, or None for the median of the longer sides, at most 64.
        color: Keep all channels instead of the luminance.
        group: Name of the array with the group of each image.

    Returns:
        The images of all parts.

    Raises:
        ValueError: If an array is missing, has the wrong shape or type, or has values out of range, or if there are
            fewer than 2 classes.

    Shape:
        - ``images``: (n, H, W) or (n, H, W, C) in the file, (n, C, size, size) in the result.
        - ``labels``: n entries.
    """
    arrays = {name.lower(): array for name, array in read_npz(file).items()}
    pairs = _find_pairs(file, arrays)
    labels = np.concatenate([pair_labels for _, pair_labels in pairs.values()])
    classes, positions = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"expected at least 2 classes in '{file}', got {len(classes)}")
    groups = None
    if group is not None:
        if group.lower() not in arrays or arrays[group.lower()].shape[:1] != labels.shape:
            raise ValueError(f"'{file}' has no array '{group}' with one group per image ({len(labels)} images)")
        groups = tuple(map(str, arrays[group.lower()]))
    return NpzImages(
        _class_names(file, arrays, classes),
        _to_one_size(file, [images for images, _ in pairs.values()], size, color),
        tuple(positions.tolist()),
        tuple(part for part, (_, pair_labels) in pairs.items() for _ in range(len(pair_labels))),
        groups,
    )


def _find_pairs(file: Path, arrays: dict[str, np.ndarray]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return images and labels by part. Arrays without the name of a part come first, as the part ''."""
    if any(name in arrays for name in IMAGE_NAMES):
        return {"": _images_and_labels(file, arrays)}
    pairs = {}
    for affix, part in PART_NAMES.items():
        members = {
            name.removeprefix(f"{affix}_").removesuffix(f"_{affix}"): array
            for name, array in arrays.items()
            if name.startswith(f"{affix}_") or name.endswith(f"_{affix}")
        }
        if members:
            pairs[part] = _images_and_labels(file, members)
    if "train" not in pairs:
        raise ValueError(f"'{file}' has no array 'images' or 'x_train', it has: {', '.join(arrays) or 'none'}")
    return pairs


def _images_and_labels(file: Path, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    images, labels = (
        next((arrays[name] for name in names if name in arrays), None) for names in (IMAGE_NAMES, LABEL_NAMES)
    )
    if images is None or labels is None:
        missing = "images" if images is None else "labels"
        raise ValueError(f"'{file}' has no array '{missing}', it has: {', '.join(arrays)}")
    labels = labels.reshape(-1)
    are_images = images.ndim in (3, 4) and images.size and images.dtype.kind in "iufb"
    if not are_images or len(images) != len(labels):
        raise ValueError(
            f"expected numbers of shape (n, H, W) or (n, H, W, C) with n labels in '{file}', "
            f"got {images.dtype} {images.shape} and {len(labels)} labels"
        )
    return images, labels


def _class_names(file: Path, arrays: dict[str, np.ndarray], classes: np.ndarray) -> tuple[str, ...]:
    """Return the names of the distinct labels: of integers, the names in the file if it has any."""
    names = next((arrays[name].reshape(-1) for name in CLASS_NAMES if name in arrays), None)
    if names is None or classes.dtype.kind not in "iu":
        return tuple(map(str, classes))
    if classes[0] < 0 or classes[-1] >= len(names):
        raise ValueError(
            f"expected labels from 0 to {len(names) - 1} for {len(names)} class_names, got {classes[0]} to "
            f"{classes[-1]} in '{file}': count them from 0, or leave out class_names"
        )
    return tuple(str(names[label]) for label in classes)


def _to_one_size(file: Path, arrays: list[np.ndarray], size: int | None, color: bool) -> Tensor:
    scaled = [pixels if color else array_to_grey(pixels) for pixels in _to_unit_range(file, arrays)]
    channels = sorted({pixels.shape[-1] for pixels in scaled})
    if len(channels) > 1:
        raise ValueError(
            f"expected the same number of channels in all images of '{file}', got {channels[0]} and {channels[-1]}: "
            "leave out --color"
        )
    size = size or default_size([max(pixels.shape[1:3]) for pixels in scaled for _ in pixels])
    images = [
        pixels if pixels.shape[1:3] == (size, size) else np.stack([letterbox(image, size) for image in pixels])
        for pixels in scaled
    ]
    return torch.from_numpy(np.ascontiguousarray(np.concatenate(images).transpose(0, 3, 1, 2)))


def _to_unit_range(file: Path, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Scale to [0, 1], as (n, H, W, C). Arrays of one wide integer type share one value of white."""
    integers = [images for images in arrays if images.dtype.kind in "iu"]
    lowest = min((int(images.min()) for images in integers), default=0)
    largest = max((int(images.max()) for images in integers), default=0)
    if lowest < 0:
        raise ValueError(
            f"expected integer pixels of at least 0 in '{file}', got {lowest}: shift them to 0, then {CURE}"
        )
    scaled = []
    for images in arrays:
        try:
            white = full_scale(images.dtype, lowest, largest) if images.dtype.kind in "iu" else 1
        except ValueError as error:
            raise ValueError(f"'{file}' {error}") from None
        pixels = images.astype(np.float32) / np.float32(white)
        if not np.isfinite(pixels).all() or pixels.min() < 0 or pixels.max() > 1:
            raise ValueError(
                f"expected floating-point pixels in [0, 1] in '{file}', got {pixels.min():g} to {pixels.max():g}: "
                "divide them by their maximum"
            )
        scaled.append(pixels if pixels.ndim == 4 else pixels[..., None])
    return scaled
