"""Image files from paths of files and folders."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from tigranet.data import UnreadableFile, image_files

T = TypeVar("T")


def expand_paths(paths: str | Path | Iterable[str | Path]) -> Iterator[Path]:
    """Return the image files that paths stand for.

    Args:
        paths: One path or several, of image files or of folders. A folder stands for all image files in it.

    Returns:
        The files, found one after the other, so that any number of them takes little memory.

    Raises:
        FileNotFoundError: If a path does not exist.
    """
    every = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    if missing := [str(path) for path in every if not path.exists()]:
        raise FileNotFoundError(f"there is no file or folder '{', '.join(missing)}'")
    return (file for path in every for file in (image_files(path) if path.is_dir() else [path]))


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
