"""Checks that a workflow makes before the work that fills its output folder."""

import os
from importlib.util import find_spec
from pathlib import Path


def check_output_folder(folder: Path, content: str) -> None:
    """Check that ``folder`` can be created and written to.

    Args:
        folder: The output folder; it need not exist.
        content: What will be saved there, for the error message, such as "model".

    Raises:
        NotADirectoryError: If ``folder`` is a file.
        PermissionError: If ``folder`` cannot be created or written to.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"a {content} is saved to a folder, got the file '{folder}'")
    parent = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise PermissionError(f"'{folder}' cannot be written: '{parent}' is not a folder that you may write to")


def has_matplotlib() -> bool:
    """Return whether matplotlib, which draws all figures, is installed."""
    return find_spec("matplotlib") is not None


def require_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
        ImportError: If it is not.
    """
    if not has_matplotlib():
        raise ImportError("figures need matplotlib, which is not installed: pip install 'tigranet[figures]'")
