"""The arrays of an .npz file."""

import zlib
from pathlib import Path
from zipfile import BadZipFile

import numpy as np


def read_npz(path: Path, *names: str) -> dict[str, np.ndarray]:
    """The arrays called ``names``, or all; an error that says so where the file is cut short, or is another."""
    with path.open("rb") as file:  # NumPy leaves bad files open
        try:
            stored = np.load(file, allow_pickle=False)
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            return {name: stored[name] for name in names or stored}
        except (ValueError, KeyError, EOFError, OSError, BadZipFile, zlib.error) as error:
            raise ValueError(f"'{path}' cannot be read as NumPy's .npz: {error}") from None
