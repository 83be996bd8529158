"""Images and labels of a user in one .npz file."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.evenly_spaced import evenly_spaced
from tigranet.data.image_arrays import check_channels_last
from tigranet.data.image_colors import MAX_EXAMINED_IMAGES, have_colors
from tigranet.data.image_index import PART_NAMES
from tigranet.data.letterbox import MAX_DEFAULT_SIZE, SizeLimit, default_size, letterbox
from tigranet.data.luminance import array_to_grey
from tigranet.data.mapped_images import empty_images
from tigranet.data.npz_file import ArrayHeader, NpzArrays, open_npz
from tigranet.data.npz_labels import as_labels, as_texts, names_of_classes
from tigranet.data.value_range import CURE, full_scale

IMAGE_NAMES = ("images", "image", "x", "data", "arr_0")
LABEL_NAMES = ("labels", "label", "y", "targets", "arr_1")
CLASS_NAMES = ("class_names", "classes", "label_names")
MAX_LABEL_BYTES = 2**28
"""Largest size of an array of labels, groups or names."""


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


def read_npz_images(
    file: Path,
    size: int | None = None,
    color: bool | None = False,
    group: str | None = None,
    max_size: SizeLimit = MAX_DEFAULT_SIZE,
) -> NpzImages:
    """Read images and labels from an .npz file.

    The file has the arrays ``images`` and ``labels``, or other names in common use (``x``, ``y``); or such a pair for
    each part (``x_train`` and ``y_train``, ``train_images`` and ``train_labels``, ...). The array ``class_names`` is
    optional. Other arrays are not read. Integers of 8 and 16 bits are divided by the largest value of their type, wider
    integers by the first of 1, 255 and 65535 that no pixel exceeds. Images are brought to one square size as files are.

    Only a part of the images is in memory before its conversion. A large result is kept in a temporary
    file (see :func:`~tigranet.data.mapped_images.empty_images`).

    Args:
        file: Path of the file.
        size: Side length in pixels, or None for the median of the longer sides, at most ``max_size``.
        color: Keep all channels instead of the luminance. If there are arrays of grey images and of images with three
            channels, the grey ones are repeated in three channels. None keeps them if the images have colours, see
            :mod:`~tigranet.data.image_colors`.
        group: Name of the array with the group of each image.
        max_size: Largest side length that is chosen if ``size`` is None.

    Returns:
        The images of all parts.

    Raises:
        ValueError: If an array is missing, too large, has the wrong shape or type, or has values out of range, or if
            there are fewer than 2 classes.

    Shape:
        - ``images``: (n, H, W) or (n, H, W, C) in the file, (n, C, size, size) in the result.
        - ``labels``: n entries.
    """
    with open_npz(file) as archive:
        source = NpzSource(file, archive)
        pairs = _find_pairs(file, source)
        labels = as_labels([source.read_small(name) for _, name in pairs.values()], file)
        classes, positions = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"expected at least 2 classes in '{file}', got {len(classes)}")
        names = next((source.read_small(name) for name in CLASS_NAMES if name in source), None)
        class_names = names_of_classes(classes, names, file)
        groups = None
        if group is not None:
            if group.lower() not in source or source.header(group.lower()).shape[:1] != labels.shape:
                raise ValueError(f"'{file}' has no array '{group}' with one group per image ({len(labels)} images)")
            groups = tuple(map(str, as_texts(source.read_small(group.lower()), f"the groups in '{file}'")))
        parts = [(part, source.header(name).shape[0]) for part, (name, _) in pairs.items()]
        return NpzImages(
            class_names,
            _to_one_size(source, [name for name, _ in pairs.values()], size, color, max_size),
            tuple(positions.tolist()),
            tuple(part for part, count in parts for _ in range(count)),
            groups,
        )


class NpzSource:
    """The arrays of a file by their names in lower case. Messages name the file.

    Args:
        file: Path of the file.
        archive: The open file.

    Raises:
        ValueError: If two names differ only by upper and lower case.
    """

    def __init__(self, file: Path, archive: NpzArrays) -> None:
        self.file, self._archive = file, archive
        self._names: dict[str, str] = {}
        for name in archive.names:
            if name.lower() in self._names:
                raise ValueError(
                    f"'{file}' has the arrays '{self._names[name.lower()]}' and '{name}': rename one of them"
                )
            self._names[name.lower()] = name

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def header(self, name: str) -> ArrayHeader:
        """Read the shape and the type of an array.

        Args:
            name: Name of the array, in lower case.

        Returns:
            The header.
        """
        return self._archive.header(self._names[name])

    def read_small(self, name: str) -> np.ndarray:
        """Read labels, names or groups.

        Args:
            name: Name of the array, in lower case.

        Returns:
            The array.

        Raises:
            ValueError: If it is too large.
        """
        if (num_bytes := self.header(name).num_bytes) > MAX_LABEL_BYTES:
            raise ValueError(f"'{name}' in '{self.file}' has {num_bytes:,} bytes, more than {MAX_LABEL_BYTES:,}")
        return self._archive.read(self._names[name])

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        """Read images in parts.

        Args:
            name: Name of the array, in lower case.

        Yields:
            Parts of the array, as (n, H, W, C).
        """
        for block in self._archive.blocks(self._names[name]):
            yield block if block.ndim == 4 else block[..., None]


def _find_pairs(file: Path, source: NpzSource) -> dict[str, tuple[str, str]]:
    """Return names of images and labels by part. Arrays without the name of a part come first, as the part ''."""
    if any(name in source for name in IMAGE_NAMES):
        return {"": _images_and_labels(file, source, {name: name for name in source})}
    pairs = {}
    for affix, part in PART_NAMES.items():
        members = {
            name.removeprefix(f"{affix}_").removesuffix(f"_{affix}"): name
            for name in source
            if name.startswith(f"{affix}_") or name.endswith(f"_{affix}")
        }
        if members:
            pairs[part] = _images_and_labels(file, source, members)
    if "train" not in pairs:
        raise ValueError(f"'{file}' has no array 'images' or 'x_train', it has: {', '.join(source) or 'none'}")
    return pairs


def _images_and_labels(file: Path, source: NpzSource, members: dict[str, str]) -> tuple[str, str]:
    """Return the names of the images and labels among some arrays, after a check of their headers."""
    images, labels = (
        next((members[name] for name in names if name in members), None) for names in (IMAGE_NAMES, LABEL_NAMES)
    )
    if images is None or labels is None:
        missing = "images" if images is None else "labels"
        raise ValueError(f"'{file}' has no array '{missing}', it has: {', '.join(members)}")
    shape, kind = source.header(images)
    num_labels = math.prod(source.header(labels).shape)
    are_images = len(shape) in (3, 4) and 0 not in shape and kind.kind in "iufb"
    if not are_images or shape[0] != num_labels:
        raise ValueError(
            f"expected numbers of shape (n, H, W) or (n, H, W, C) with n labels in '{file}', "
            f"got {kind} {shape} and {num_labels} labels"
        )
    try:
        check_channels_last(shape[1:], images)
    except ValueError as error:
        raise ValueError(f"'{images}' in '{file}': {error}") from None
    return images, labels


def _have_colors(source: NpzSource, names: list[str], max_values: list[int]) -> bool:
    """Return whether the images at the beginning of the arrays have colours."""
    return have_colors(
        torch.from_numpy(block[position].astype(np.float32).transpose(2, 0, 1) / np.float32(max_value))
        for name, max_value in zip(names, max_values, strict=True)
        for block in islice(source.blocks(name), 1)
        for position in evenly_spaced(len(block), MAX_EXAMINED_IMAGES)
    )


def _to_one_size(
    source: NpzSource, names: list[str], size: int | None, color: bool | None, max_size: SizeLimit
) -> Tensor:
    headers = [source.header(name) for name in names]
    max_values = find_max_values(source, names, headers)
    if color is None:
        color = _have_colors(source, names, max_values)
    stored_channels = [header.shape[3] if len(header.shape) == 4 else 1 for header in headers]
    channels = sorted(set(stored_channels)) if color else [1]
    if len(channels) > 1 and channels != [1, 3]:
        raise ValueError(
            f"expected the same number of channels in all images of '{source.file}', or 1 and 3, got {channels[0]} and "
            f"{channels[-1]}: use --grey"
        )
    sides = [max(header.shape[1:3]) for header in headers for _ in range(header.shape[0])]
    size = size or default_size(sides, max_size)
    result = empty_images(sum(header.shape[0] for header in headers), channels[-1], size, size)
    position = 0
    for name, max_value in zip(names, max_values, strict=True):
        for block in source.blocks(name):
            pixels = block.astype(np.float32)
            pixels /= np.float32(max_value)
            pixels = pixels if color else array_to_grey(pixels)
            if pixels.shape[1:3] != (size, size):
                pixels = np.stack([letterbox(image, size) for image in pixels])
            # Grey images are repeated in three channels if others have three.
            result[position : position + len(pixels)] = torch.from_numpy(pixels.transpose(0, 3, 1, 2))
            position += len(pixels)
    return result


def find_max_values(source: NpzSource, names: list[str], headers: list[ArrayHeader]) -> list[int]:
    """Return what the pixels of each array are divided by. Arrays of one wide integer type share one value.

    Args:
        source: The file.
        names: Names of the arrays, in lower case.
        headers: Their headers.

    Returns:
        One value per array; 1 for numbers that are not integers.

    Raises:
        ValueError: If integers are negative or do not fit into 16 bits, or if floating-point pixels are not in [0, 1].
    """
    kinds = [header.dtype for header in headers]
    integers = [name for name, kind in zip(names, kinds, strict=True) if kind.kind in "iu"]
    ranges: dict[str, tuple[int | float, int | float]] = {}
    if any(kind.kind == "i" or (kind.kind == "u" and kind.itemsize > 2) for kind in kinds):
        ranges = {name: _range(source, name) for name in integers}
    lowest = int(min((low for low, _ in ranges.values()), default=0))
    largest = int(max((high for _, high in ranges.values()), default=0))
    if lowest < 0:
        raise ValueError(
            f"expected integer pixels of at least 0 in '{source.file}', got {lowest}: shift them to 0, then {CURE}"
        )
    for name, kind in zip(names, kinds, strict=True):
        if kind.kind == "f":
            with np.errstate(over="ignore"):
                low, high = np.array(_range(source, name)).astype(np.float32)
            if not (low >= 0 and high <= 1):
                raise ValueError(
                    f"expected floating-point pixels in [0, 1] in '{source.file}', got {low:g} to {high:g}: "
                    "divide them by their maximum"
                )
    try:
        return [full_scale(kind, lowest, largest) if kind.kind in "iu" else 1 for kind in kinds]
    except ValueError as error:
        raise ValueError(f"'{source.file}' {error}") from None


def _range(source: NpzSource, name: str) -> tuple[int | float, int | float]:
    """Return the smallest and the largest pixel of an array, NaN if one is NaN."""
    extremes = np.array([(block.min(), block.max()) for block in source.blocks(name)])
    return extremes[:, 0].min().item(), extremes[:, 1].max().item()
