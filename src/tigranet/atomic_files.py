"""Text files that replace an older version only once they are complete."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def check_writable(path: Path) -> None:
    """Check that a file can be written, so that an error appears before the work that produces its content.

    Args:
        path: Path of the file. An existing file may be replaced.

    Raises:
        NotADirectoryError: If the parent folder does not exist.
        IsADirectoryError: If ``path`` is a folder.
        PermissionError: If the user may not write to the parent folder.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise NotADirectoryError(f"'{path}' cannot be written: there is no folder '{path.parent}', create it first")
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' cannot be written: it is a folder, give the name of a file")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"'{path}' cannot be written: you may not write to '{path.parent}'")


@contextmanager
def atomic_write(path: Path) -> Iterator[TextIO]:
    """Open a text file for writing that replaces ``path`` at the end of the ``with`` block.

    The text goes to a temporary file in the same folder. If the block raises, the temporary file is deleted and an
    existing file at ``path`` stays as it was.

    Args:
        path: Path of the file.

    Yields:
        The temporary file, open for writing text in UTF-8.

    Raises:
        OSError: If ``path`` cannot be written (see :func:`check_writable`).
    """
    check_writable(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
