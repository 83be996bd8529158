"""Which images there are: the files of a folder, or of a table, with the class, part and group of each."""

import csv
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tigranet.data.image_io import SUFFIXES
from tigranet.pretrained import CONFIG, WEIGHTS

PARTS = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation", "test": "test"}
PATH_COLUMNS = ("path", "file", "filename", "image")
LABEL_COLUMNS = ("label", "class", "target")
PART_COLUMNS = ("part", "split", "set")


@dataclass(frozen=True)
class ImageIndex:
    """Images, and for each its class, the part it is meant for ('' where that is to be drawn), and its group: the
    images of one group, views of one object say, never come into two parts."""

    class_names: tuple[str, ...]
    paths: tuple[Path, ...]
    labels: tuple[int, ...]
    parts: tuple[str, ...]
    groups: tuple[str, ...] | None = None


def image_files(folder: Path) -> Iterator[Path]:
    """The image files below ``folder``, by name; hidden ones are left out, and pictures beside a saved network."""
    with os.scandir(folder) as entries:
        ordered = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    for entry in ordered:
        if entry.is_dir():
            if not _is_network(Path(entry.path)):
                yield from image_files(Path(entry.path))
        elif os.path.splitext(entry.name)[1].lower() in SUFFIXES:
            yield Path(entry.path)


def index_folder(folder: Path, group: str | None = None) -> ImageIndex:
    """``folder/class/image``, or ``folder/train/class/image`` with ``val`` and ``test`` beside it. A folder with a
    saved network is no class.

    ``group`` is a regular expression that finds the group in a path below the folder, by its first bracket if it has
    one.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder '{folder}'")
    tops = {PARTS[path.name.lower()]: path for path in _folders(folder) if path.name.lower() in PARTS}
    if "train" not in tops:
        tops = {"": folder}
    names = sorted({path.name for top in tops.values() for path in _folders(top)})
    if len(names) < 2:
        raise ValueError(
            f"a folder of images has one sub-folder for each class, at least 2, '{folder}' has {len(names)}: "
            "put the images of each class into a folder of its own"
        )
    rows = [
        (path, label, part)
        for part, top in tops.items()
        for label, name in enumerate(names)
        if (top / name).is_dir()
        for path in image_files(top / name)
    ]
    trained = {label for _, label, part in rows if part in ("", "train")}
    for label, name in enumerate(names):
        if label not in trained:
            raise ValueError(f"the class '{name}' of '{folder}' has no images to train on ({', '.join(SUFFIXES)})")
    paths, labels, parts = zip(*rows, strict=True)
    groups = None if group is None else _found_in(paths, folder, group)
    return ImageIndex(tuple(names), paths, labels, parts, groups)


def index_csv(table: Path, group: str | None = None) -> ImageIndex:
    """A CSV file with a header and a row an image: columns ``path`` (from the table's folder) and ``label``, and, where
    it says so, ``part`` (train, val, test). ``group`` is the name of the column with the group."""
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            sample = file.readline()
            file.seek(0)
            delimiter = max(",;\t", key=sample.count)
            rows = list(csv.DictReader(file, delimiter=delimiter, restval=""))
    except UnicodeDecodeError:
        raise ValueError(f"'{table}' is not text in UTF-8: save it as 'CSV UTF-8'") from None
    if not rows:
        raise ValueError(f"'{table}' has no rows: it wants a header and a row an image")
    columns = {(name or "").strip().lower(): name for name in rows[0]}
    path, label = (_column(table, columns, names) for names in (PATH_COLUMNS, LABEL_COLUMNS))
    part = next((columns[name] for name in PART_COLUMNS if name in columns), None)
    for number, row in enumerate(rows, start=2):
        for column in (path, label):
            if not (row[column] or "").strip():
                raise ValueError(f"line {number} of '{table}' has nothing in the column '{column}'")
        if part is not None and row[part].strip().lower() not in PARTS:
            raise ValueError(f"line {number} of '{table}' has the part '{row[part]}': wanted train, val or test")
    names = sorted({row[label].strip() for row in rows})
    if len(names) < 2:
        raise ValueError(f"a table of images has at least 2 classes, '{table}' has only '{names[0]}'")
    groups = None if group is None else tuple(row[_column(table, columns, (group.lower(),))] for row in rows)
    return ImageIndex(
        tuple(names),
        tuple(table.parent / row[path].strip() for row in rows),
        tuple(names.index(row[label].strip()) for row in rows),
        tuple("" if part is None else PARTS[row[part].strip().lower()] for row in rows),
        groups,
    )


def _folders(folder: Path) -> list[Path]:
    inside = (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [path for path in inside if not _is_network(path)]


def _is_network(folder: Path) -> bool:
    """Whether a network was saved there, or its training broken off: it is no class, though it lies among them."""
    saved = (folder / CONFIG).exists() and (folder / WEIGHTS).exists()
    return saved or (folder / "checkpoints" / "last.ckpt").exists()


def _found_in(paths: tuple[Path, ...], folder: Path, pattern: str) -> tuple[str, ...]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"'{pattern}' is not a regular expression: {error}") from None
    found = []
    for path in paths:
        name = path.relative_to(folder).as_posix()
        match = expression.search(name)
        if match is None:
            raise ValueError(f"'{pattern}' finds no group in '{name}': every image needs one")
        found.append(match[1] if expression.groups else match[0])
    return tuple(found)


def _column(table: Path, columns: dict[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        if name in columns:
            return columns[name]
    raise ValueError(f"'{table}' has no column '{names[0]}', it has: {', '.join(columns)}")
