"""Images from what a user names: files, folders, tables, lists, arrays, archives and standard input."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from tigranet.data import UnreadableFile
from tigranet.data.csv_paths import csv_paths
from tigranet.data.find_images import find_images, unusable_reason
from tigranet.data.letterbox import ImageItem
from tigranet.data.npz_images import npz_images
from tigranet.data.path_list import LIST_SUFFIXES, listed_paths
from tigranet.data.standard_input import STANDARD_INPUT, images_of_stream, standard_input
from tigranet.data.user_data import TABLE_SUFFIXES
from tigranet.data.zip_images import zip_images

T = TypeVar("T")


def expand_paths(paths: str | Path | Iterable[str | Path]) -> Iterator[ImageItem]:
    """Return the images that paths stand for, and what cannot be used.

    The suffix of a file tells what it holds: ``.csv`` and ``.tsv`` a table with a column of paths, ``.txt``, ``.lst``
    and ``.list`` one path per line, ``.npz`` an array of images, ``.zip`` image files. All other files are images.

    Args:
        paths: One path or several. A folder stands for all image files in it, see
            :func:`~tigranet.data.find_images.find_images`, and ``-`` for standard input: a list of paths, or one image,
            see :func:`~tigranet.data.standard_input.images_of_stream`.

    Returns:
        The images, found one after the other, so that any number of them takes little memory. Broken links, named
        pipes, sockets, devices, folders that cannot be listed, and tables, lists, arrays and archives that cannot be
        read give the reason instead.

    Raises:
        FileNotFoundError: If one of ``paths`` does not exist.
        ValueError: If standard input is closed, or is named twice.
    """
    every = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    if missing := [str(path) for path in every if path != STANDARD_INPUT and _is_missing(path)]:
        raise FileNotFoundError(f"there is no file or folder '{', '.join(missing)}'")
    if every.count(STANDARD_INPUT) > 1:
        raise ValueError("standard input can be read once: give '-' once")
    stream = standard_input() if STANDARD_INPUT in every else None
    return (
        item
        for path in every
        for item in (_expand_listed(images_of_stream(stream)) if path == STANDARD_INPUT and stream else _expand(path))
    )


def _is_missing(path: Path) -> bool:
    """Whether there is nothing at a path, not even a broken link. What may not be examined is not missing."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the path
        return True
    except OSError:
        return False
    return False


def _expand(path: Path) -> Iterator[ImageItem]:
    suffix = path.suffix.lower()
    if unusable_reason(path) or path.is_dir():
        yield from _expand_listed([path])
    elif suffix in TABLE_SUFFIXES:
        yield from _expand_listed(csv_paths(path))
    elif suffix in LIST_SUFFIXES:
        yield from _expand_listed(listed_paths(path))
    elif suffix == ".npz":
        yield from npz_images(path)
    elif suffix == ".zip":
        yield from zip_images(path)
    else:
        yield path


def _expand_listed(items: Iterable[ImageItem]) -> Iterator[ImageItem]:
    """Replace folders by the image files in them, and what is neither a file nor a folder by the reason."""
    for item in items:
        if not isinstance(item, Path):
            yield item
        elif reason := unusable_reason(item):
            yield UnreadableFile(item, reason)
        elif item.is_dir():
            yield from find_images(item)
        else:
            yield item


def require_readable(results: Iterable[T | UnreadableFile]) -> Iterator[T | UnreadableFile]:
    """Pass results on, and raise an error at the end if there was none but unreadable files.

    Args:
        results: A result for each file, or the reason why there is none.

    Yields:
        The same items.

    Raises:
        ValueError: At the end, if no file could be read.
    """
    total = readable = 0
    for result in results:
        total += 1
        readable += not isinstance(result, UnreadableFile)
        yield result
    if not readable:
        raise ValueError("none of the images could be used" if total else "there are no images")
