"""The folder in which the package keeps files that it can rebuild or download again."""

import os
import stat
import tempfile
from functools import cache
from pathlib import Path


def cache_folder() -> Path:
    """Return the cache folder of the current user. It need not exist yet.

    The first of these that applies:

    1. the folder in the environment variable ``TIGRANET_CACHE``;
    2. ``tigranet`` in the user's cache folder, on Linux ``$XDG_CACHE_HOME/tigranet`` or ``~/.cache/tigranet``, if it
       exists or can be created;
    3. a folder in the system's temporary folder that only the current user can access. This is the case for users
       without a home directory, or with one that they cannot write to.

    Returns:
        The path of the folder.
    """
    if override := os.environ.get("TIGRANET_CACHE"):
        return Path(override)
    folder = _user_cache_folder()
    return folder if folder is not None and _is_usable(folder) else _private_temporary_folder()


def _user_cache_folder() -> Path | None:
    """Return the platform's cache folder for this package, or None if the user has no home directory."""
    from platformdirs import user_cache_dir  # imported here because it takes a noticeable part of the start-up time

    try:
        folder = Path(user_cache_dir("tigranet"))
    except (RuntimeError, KeyError, OSError):
        return None
    return None if folder.parts[:1] == ("~",) else folder  # "~" remains where there is no home directory


def _is_usable(folder: Path) -> bool:
    """Whether the folder exists, or the closest existing parent is a folder in which it can be created."""
    try:
        if folder.is_dir():
            return True
        parent = next(parent for parent in folder.absolute().parents if parent.exists())
        return parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
    except OSError:
        return False


def _private_temporary_folder() -> Path:
    """Return a folder that persists between processes, or one for this process if another user owns its name."""
    if not hasattr(os, "getuid"):  # on Windows, every user has a temporary folder of their own
        return Path(tempfile.gettempdir(), "tigranet")
    folder = Path(tempfile.gettempdir(), f"tigranet-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return _folder_of_this_process()
    is_private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if is_private else _folder_of_this_process()


@cache
def _folder_of_this_process() -> Path:
    return Path(tempfile.mkdtemp(prefix="tigranet-"))
