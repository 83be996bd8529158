"""The arrays of an .npz file."""

import zlib
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

STARTS = (b"PK\x03\x04", b"PK\x05\x06", np.lib.format.MAGIC_PREFIX)
"""Of a zip file, of an empty one, of a single array."""


def read_npz(path: Path, *names: str) -> dict[str, np.ndarray]:
    """The arrays called ``names``, or all; an error that says so where the file is cut short, or is another."""
    with path.open("rb") as file:  # NumPy leaves bad files open
        try:
            start = file.read(6)
            file.seek(0)
            if start and not start.startswith(STARTS):  # NumPy would take it for a pickle, and advise to allow it
                raise ValueError("it is no .npz file, whatever its name says")
            stored = np.load(file, allow_pickle=False)
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            return {name: stored[name] for name in names or stored}
        except (ValueError, KeyError, EOFError, OSError, BadZipFile, zlib.error) as error:
            raise ValueError(f"'{path}' cannot be read as NumPy's .npz: {error}") from None
