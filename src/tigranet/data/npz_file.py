"""Read the arrays of an .npz file, without pickles."""

import zlib
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06", np.lib.format.MAGIC_PREFIX)
"""First bytes of a zip file, of an empty zip file and of a single array."""


def read_npz(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Read arrays from an .npz file.

    Args:
        path: Path of the file.
        *names: Names of the arrays to read. Without names, all arrays are read.

    Returns:
        The arrays by name, in the order of ``names`` or of the file.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file is not a complete .npz file, lacks an array, or holds Python objects.
    """
    with path.open("rb") as file:  # np.load given a path leaves a damaged file open
        try:
            signature = file.read(6)
            file.seek(0)
            if signature and not signature.startswith(SIGNATURES):
                # NumPy would take the file for a pickle and advise to allow pickles
                raise ValueError("it is no .npz file, despite its name")
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array, expected an archive of arrays (numpy.savez)")
            return {name: archive[name] for name in names or archive}
        except (ValueError, KeyError, EOFError, OSError, BadZipFile, zlib.error) as error:
            raise ValueError(f"'{path}' cannot be read as NumPy's .npz: {error}") from None
