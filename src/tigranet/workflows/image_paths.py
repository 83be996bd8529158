"""Image files from paths of files and folders."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from tigranet.data import UnreadableFile
from tigranet.data.find_images import find_images, unusable_reason

T = TypeVar("T")


def expand_paths(paths: str | Path | Iterable[str | Path]) -> Iterator[Path | UnreadableFile]:
    """Return the image files that paths stand for, and what cannot be used.

    Args:
        paths: One path or several, of image files or of folders. A folder stands for all image files in it, see
            :func:`~tigranet.data.find_images.find_images`.

    Returns:
        The files, found one after the other, so that any number of them takes little memory. Broken links, named pipes,
        sockets, devices, and folders that cannot be listed give the reason instead.

    Raises:
        FileNotFoundError: If a path does not exist.
    """
    every = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    if missing := [str(path) for path in every if _is_missing(path)]:
        raise FileNotFoundError(f"there is no file or folder '{', '.join(missing)}'")
    return (item for path in every for item in _expand(path))


def _is_missing(path: Path) -> bool:
    """Whether there is nothing at a path, not even a broken link. What may not be examined is not missing."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the path
        return True
    except OSError:
        return False
    return False


def _expand(path: Path) -> Iterator[Path | UnreadableFile]:
    if reason := unusable_reason(path):
        yield UnreadableFile(path, reason)
    elif path.is_dir():
        yield from find_images(path)
    else:
        yield path


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
