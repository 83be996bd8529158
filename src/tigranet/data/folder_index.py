"""Index a folder of images with one sub-folder per class."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tigranet.data.class_names import decode_class_folders, decode_folder_name
from tigranet.data.image_index import PART_NAMES, ImageIndex
from tigranet.data.image_io import SUFFIXES
from tigranet.model_folder import is_model_folder


def image_files(folder: Path) -> Iterator[Path]:
    """Find the image files in a folder and its sub-folders.

    Hidden files and the images inside folders of saved models are skipped.

    Args:
        folder: Folder to search.

    Yields:
        Paths of the image files, sorted by name within each folder.
    """
    with os.scandir(folder) as entries:
        visible = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    for entry in visible:
        if entry.is_dir():
            if not is_model_folder(Path(entry.path)):
                yield from image_files(Path(entry.path))
        elif os.path.splitext(entry.name)[1].lower() in SUFFIXES:
            yield Path(entry.path)


def index_folder(folder: Path, group: str | None = None) -> ImageIndex:
    """Index a folder with one sub-folder per class.

    The layout is ``folder/<class>/<image>``, or ``folder/train/<class>/<image>`` with ``val`` and ``test`` next to
    ``train``. A sub-folder with a saved model is not a class.

    Args:
        folder: Folder with the images.
        group: Regular expression that finds the group in the path of an image relative to ``folder``. If the
            expression has parentheses, the group is the match of the first pair, otherwise it is the whole match.

    Returns:
        The image files, sorted by part, class and name.

    Raises:
        FileNotFoundError: If the folder does not exist.
        ValueError: If there are fewer than 2 classes, if a class has no training images, if ``group`` is not a
            regular expression, or if it does not match the path of every image.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder '{folder}'")
    part_folders = {PART_NAMES[path.name.lower()]: path for path in _folders(folder) if path.name.lower() in PART_NAMES}
    if "train" not in part_folders:
        part_folders = {"": folder}
    names = sorted(
        {path.name for part_folder in part_folders.values() for path in _folders(part_folder)}, key=decode_folder_name
    )
    if len(names) < 2:
        raise ValueError(
            f"expected at least 2 sub-folders in '{folder}', one per class, got {len(names)}: "
            "put the images of each class into a folder of its own"
        )
    entries = [
        (path, label, part)
        for part, part_folder in part_folders.items()
        for label, name in enumerate(names)
        if (part_folder / name).is_dir()
        for path in image_files(part_folder / name)
    ]
    training_labels = {label for _, label, part in entries if part in ("", "train")}
    for label, name in enumerate(names):
        if label not in training_labels:
            raise ValueError(f"the class '{name}' of '{folder}' has no training images ({', '.join(SUFFIXES)})")
    paths, labels, parts = zip(*entries, strict=True)
    groups = None if group is None else _match_groups(paths, folder, group)
    return ImageIndex(decode_class_folders(folder, names), paths, labels, parts, groups)


def _folders(folder: Path) -> list[Path]:
    """Return the sub-folders that are neither hidden nor saved models."""
    visible = (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [path for path in visible if not is_model_folder(path)]


def _match_groups(paths: tuple[Path, ...], folder: Path, pattern: str) -> tuple[str, ...]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"'{pattern}' is not a regular expression: {error}") from None
    groups = []
    for path in paths:
        name = path.relative_to(folder).as_posix()
        match = expression.search(name)
        if match is None:
            raise ValueError(f"'{pattern}' finds no group in '{name}': it must match the path of every image")
        groups.append(match[1] if expression.groups else match[0])
    return tuple(groups)
