"""Files that appear only when they are whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """A text file to write to that replaces ``path`` at the end, if there was no error."""
    if not path.absolute().parent.is_dir():
        raise NotADirectoryError(f"'{path}' cannot be written: there is no folder '{path.parent}'")
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with staged.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
            yield file
        os.replace(staged, path)
    finally:
        staged.unlink(missing_ok=True)
