"""Files that appear only when they are whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def check_writable(path: Path) -> None:
    """Whether ``path`` can be written, before the work that fills it."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise NotADirectoryError(f"'{path}' cannot be written: there is no folder '{path.parent}'")
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' cannot be written: it is a folder, give the name of a file")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"'{path}' cannot be written: you may not write to '{path.parent}'")


@contextmanager
def atomic_write(path: Path) -> Iterator[TextIO]:
    """A text file to write to that replaces ``path`` at the end, if there was no error."""
    check_writable(path)
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with staged.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
            yield file
        os.replace(staged, path)
    finally:
        staged.unlink(missing_ok=True)
