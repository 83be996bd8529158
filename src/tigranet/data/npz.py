"""The arrays of a data set's own .npz file."""

import zlib
from pathlib import Path
from zipfile import BadZipFile

import numpy as np


def read_npz(path: Path, *names: str) -> list[np.ndarray]:
    """The arrays called ``names``; an error that says so where the file is cut short, or is another."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:  # NumPy leaves bad files open
            return [arrays[name] for name in names]
    except (ValueError, KeyError, EOFError, OSError, BadZipFile, zlib.error) as error:
        raise ValueError(f"'{path}' is no whole {path.name}: {error}") from None
