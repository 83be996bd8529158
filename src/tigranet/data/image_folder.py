"""A user's own images: one sub-folder a class."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from tigranet.data.image_file import SUFFIXES, BrokenImageError, read_image
from tigranet.data.labelled import DataSet, Labelled
from tigranet.data.transforms import Isometry

LARGEST_SIDE = 64
HELD_OUT = 0.15
"""The part of each class that is held out to validate, and again to test, where the folder does not say."""
PARTS = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation", "test": "test"}


class Broken(NamedTuple):
    """A file that was left out, and why."""

    path: Path
    reason: str


@dataclass(frozen=True)
class FoundImages:
    """The image files of a folder, by part (train, validation, test; '' where it has no parts) and class."""

    class_names: tuple[str, ...]
    parts: dict[str, list[tuple[Path, int]]]


def image_files(folder: Path) -> Iterator[Path]:
    """The image files below ``folder``, by name; hidden ones are left out."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from image_files(path)
        elif path.suffix.lower() in SUFFIXES:
            yield path


def find_images(folder: Path) -> FoundImages:
    """``folder/class/image``, or ``folder/train/class/image`` with ``val`` and ``test`` beside it."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder '{folder}'")
    below = _folders(folder)
    tops = {PARTS[path.name.lower()]: path for path in below if path.name.lower() in PARTS}
    if "train" not in tops:
        tops = {"": folder}
    names = sorted({path.name for top in tops.values() for path in _folders(top)})
    parts = {
        part: [
            (path, label)
            for label, name in enumerate(names)
            if (top / name).is_dir()
            for path in image_files(top / name)
        ]
        for part, top in tops.items()
    }
    for label, name in enumerate(names):
        if not any(label == other for _, other in parts.get("train", parts.get("", []))):
            raise ValueError(f"the class '{name}' of '{folder}' has no images to train on ({', '.join(SUFFIXES)})")
    if len(names) < 2:
        raise ValueError(
            f"a folder of images has one sub-folder for each class, at least 2, '{folder}' has {len(names)}: "
            "put the images of each class into a folder of its own"
        )
    return FoundImages(tuple(names), parts)


def framed(image: Float[np.ndarray, "height width channels"], size: int) -> Float[np.ndarray, "size size channels"]:
    """The image on a square of ``size``: scaled so that its longer side fits, in the middle, around it the median of
    its border. An image of that size is left as it is."""
    height, width, channels = image.shape
    if (height, width) == (size, size):
        return image
    scale = size / max(height, width)
    rows, columns = max(1, round(height * scale)), max(1, round(width * scale))
    planes = [Image.fromarray(np.ascontiguousarray(image[..., channel])) for channel in range(channels)]
    scaled = [np.asarray(plane.resize((columns, rows), Image.Resampling.BILINEAR)) for plane in planes]
    small = np.stack(scaled, axis=-1)
    border = np.concatenate([small[0], small[-1], small[:, 0], small[:, -1]])
    square = np.tile(np.median(border, axis=0).astype(np.float32), (size, size, 1))
    top, left = (size - rows) // 2, (size - columns) // 2
    square[top : top + rows, left : left + columns] = small
    return square


def read_framed(
    paths: Iterable[Path], size: int, color: bool, workers: int = 4, window: int = 256
) -> Iterator[tuple[Path, Float[Tensor, "channels size size"] | Broken]]:
    """Each file with its image, or the reason why there is none: in order, read in parallel, ``window`` at a time."""

    def read(path: Path) -> tuple[Path, Tensor | Broken]:
        try:
            image = framed(read_image(path, color), size)
        except BrokenImageError as error:
            return path, Broken(path, str(error))
        return path, torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).contiguous()

    remaining = iter(paths)
    with ThreadPoolExecutor(workers) as pool:
        while chunk := list(islice(remaining, window)):
            yield from pool.map(read, chunk)


def load_folder(
    folder: Path,
    seed: int = 0,
    size: int | None = None,
    color: bool = False,
    step: Callable[[], None] = lambda: None,
) -> tuple[DataSet, list[Broken]]:
    """The images of ``folder`` as a data set, and the files that were left out. ``step`` is called after each file.

    Images are brought to one square size (:func:`framed`): ``size``, or the median of their longer sides, at most 64.
    Where the folder has no parts of its own, ``seed`` draws 15 % of each class to validate and 15 % to test. Where it
    has some, images to validate that are missing are drawn likewise, and those to validate serve to test as well.
    """
    found = find_images(folder)
    size = size or _usual_size([path for part in found.parts.values() for path, _ in part])
    broken: list[Broken] = []
    loaded: dict[str, Labelled] = {}
    for part, files in found.parts.items():
        images, labels = [], []
        for (_, image), (_, label) in zip(read_framed((path for path, _ in files), size, color), files, strict=True):
            step()
            if isinstance(image, Broken):
                broken.append(image)
            else:
                images.append(image)
                labels.append(label)
        channels = {image.shape[0] for image in images}
        if len(channels) > 1:
            raise ValueError(f"the images of '{folder}' have {sorted(channels)} channels: leave out --color")
        if images:
            loaded[part] = Labelled(torch.stack(images), torch.tensor(labels))
    if "" in loaded:
        train, validation, test = _split(loaded[""], found.class_names, seed, held_out=2)
    elif "train" in loaded:
        train = loaded["train"]
        if "validation" not in loaded:
            train, loaded["validation"] = _split(train, found.class_names, seed, held_out=1)
        validation = loaded["validation"]
        test = loaded.get("test", validation)
    else:
        raise ValueError(f"none of the images of '{folder}' can be read; the first: {broken[0].reason}")
    moved = Isometry(turned=True, outside="reflection")  # photographs fill their frame
    return DataSet(folder.name, found.class_names, train, validation, test, moved), broken


def _folders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]


def _usual_size(paths: list[Path]) -> int:
    """The median of the longer sides, by the headers of at most 1,000 files."""
    sides = []
    for path in paths[:: max(1, len(paths) // 1000)]:
        try:
            with Image.open(path) as image:
                sides.append(max(image.size))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            continue  # it will be read, and reported, later
    return max(2, min(LARGEST_SIDE, round(median(sides)))) if sides else LARGEST_SIDE


def _split(data: Labelled, class_names: tuple[str, ...], seed: int, held_out: int) -> list[Labelled]:
    """The training images and ``held_out`` further parts, each with its share of every class."""
    generator = torch.Generator().manual_seed(seed)
    parts: list[list[Tensor]] = [[] for _ in range(held_out + 1)]
    for label, name in enumerate(class_names):
        members = torch.nonzero(data.labels == label).flatten()
        if len(members) <= held_out:
            raise ValueError(
                f"the class '{name}' has {len(members)} images that can be read, at least {held_out + 1} are needed"
            )
        members = members[torch.randperm(len(members), generator=generator)]
        share = max(1, round(HELD_OUT * len(members)))
        for number in range(1, held_out + 1):
            parts[number].append(members[(number - 1) * share : number * share])
        parts[0].append(members[held_out * share :])
    return [data.take(torch.cat(part).sort().values) for part in parts]
