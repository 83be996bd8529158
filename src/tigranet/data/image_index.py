"""A list of image files with their labels: the common result of indexing a folder or a table."""

from dataclasses import dataclass
from pathlib import Path

from tigranet.data.letterbox import UnreadableFile

PART_NAMES = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation", "test": "test"}
"""The part of a data set for each name in common use, in lower case."""


@dataclass(frozen=True)
class ImageIndex:
    """Image files with the label, part and group of each.

    All tuples except ``class_names`` and ``skipped`` have one entry per image.
    """

    class_names: tuple[str, ...]
    """Names of the classes, sorted."""
    paths: tuple[Path, ...]
    """Paths of the image files."""
    labels: tuple[int, ...]
    """Positions in ``class_names``."""
    parts: tuple[str, ...]
    """'train', 'validation' or 'test'; '' if the data do not assign a part, so that it is drawn at random."""
    groups: tuple[str, ...] | None = None
    """Names of groups, such as the object in the image. Images of one group never go to different parts."""
    skipped: tuple[UnreadableFile, ...] = ()
    """What is not an image file or a folder that can be searched, with the reasons."""
    repeated_rows: int = 0
    """Number of rows of a table that repeat an earlier row, and are not among the images."""
