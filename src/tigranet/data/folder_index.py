"""Index a folder of images with one sub-folder per class."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tigranet.data.class_names import check_class_names, names_that_differ_by_case
from tigranet.data.find_images import find_folders, image_files
from tigranet.data.folder_names import decode_class_folders, decode_folder_name
from tigranet.data.image_index import PART_NAMES, ImageIndex
from tigranet.data.image_io import SUFFIXES

if TYPE_CHECKING:
    from tigranet.data.letterbox import UnreadableFile


def index_folder(folder: Path, group: str | None = None) -> ImageIndex:
    """Index a folder with one sub-folder per class.

    The layout is ``folder/<class>/<image>``, or ``folder/train/<class>/<image>`` with ``val`` and ``test`` next to
    ``train``. A sub-folder with a saved model is not a class, and neither is one that cannot be listed. If there is no
    ``train``, a sub-folder with the name of a part is a class, provided that there is only one and that it has no
    sub-folders of its own.

    Args:
        folder: Folder with the images.
        group: Regular expression that finds the group in the path of an image relative to ``folder``. If the
            expression has parentheses, the group is the match of the first pair, otherwise it is the whole match.

    Returns:
        The image files, sorted by part, class and name, and what was skipped.

    Raises:
        FileNotFoundError: If the folder does not exist.
        ValueError: If there are parts but none is ``train``, if two sub-folders are the same part, if there are fewer
            than 2 classes, if two classes have the same name, if a class has no training images, if ``group`` is not
            a regular expression, or if it does not match the path of every image.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder '{folder}'")
    class_folders = {
        part: {path.name: path for path in find_folders(part_folder)}
        for part, part_folder in _part_folders(folder).items()
    }
    names = sorted({name for folders in class_folders.values() for name in folders}, key=decode_folder_name)
    if len(names) < 2:
        raise ValueError(
            f"expected at least 2 sub-folders in '{folder}', one per class, got {len(names)}: "
            "put the images of each class into a folder of its own"
        )
    class_names = decode_class_folders(folder, names)
    check_class_names(class_names, folder)
    skipped: list[UnreadableFile] = []
    for parent in (folder, *find_folders(folder)):  # the sub-folders may be parts
        find_folders(parent, skipped.append)
    entries = [
        (path, label, part)
        for part, folders in class_folders.items()
        for label, name in enumerate(names)
        if name in folders
        for path in image_files(folders[name], skipped.append)
    ]
    training_labels = {label for _, label, part in entries if part in ("", "train")}
    for label, name in enumerate(names):
        if label not in training_labels:
            spellings = [other for alike in names_that_differ_by_case(names) if name in alike for other in alike]
            remedy = (
                f"give the folders {' and '.join(map(repr, spellings))} one name"
                if spellings
                else "add images, or remove the folder"
            )
            raise ValueError(
                f"the class '{name}' of '{folder}' has no training images ({', '.join(SUFFIXES)}): {remedy}"
            )
    paths, labels, parts = zip(*entries, strict=True)
    groups = None if group is None else _match_groups(paths, folder, group)
    return ImageIndex(class_names, paths, labels, parts, groups, tuple({file.path: file for file in skipped}.values()))


def _part_folders(folder: Path) -> dict[str, Path]:
    """Return the sub-folder of each part; the folder itself as the part '' if its sub-folders are the classes."""
    part_folders: dict[str, Path] = {}
    for path in sorted(find_folders(folder)):
        part = PART_NAMES.get(path.name.strip().lower())
        if part is not None and part in part_folders:
            raise ValueError(
                f"'{folder}' has two folders for the part {part}, '{part_folders[part].name}' and '{path.name}': "
                "put their images into one of them"
            )
        if part is not None:
            part_folders[part] = path
    if "train" in part_folders:
        return part_folders
    if len(part_folders) > 1 or any(find_folders(path) for path in part_folders.values()):
        names = " and ".join(f"'{path.name}'" for path in part_folders.values())
        raise ValueError(
            f"'{folder}' has {names} but no folder 'train': add the training images as 'train', or, if {names} "
            f"should be {'classes' if len(part_folders) > 1 else 'a class'}, use other names"
        )
    return {"": folder}


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
