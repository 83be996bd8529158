"""Output files that replace an older version only once they are complete.

After the user has asked the process to stop, no file is replaced.

A symbolic link stays, and the file that it points to is replaced. A device, a named pipe or a socket, such as
``/dev/stdout`` or ``/dev/null``, is written directly, because it cannot be replaced.
"""

import errno
import io
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from tigranet.abandoned_files import STAGING_PREFIX, delete_abandoned_files
from tigranet.stop_request import raise_if_stop_requested

_O_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate line ends otherwise.
FULL_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk without space, of a user without space, and of a file beyond the limit of its size."""
MAX_LINKS = 40
"""Largest number of symbolic links that are followed, as in Linux."""


def check_writable(path: Path) -> None:
    """Check that a file can be written, so that an error appears before the work that produces its content.

    Args:
        path: Path of the file. An existing file may be replaced.

    Raises:
        NotADirectoryError: If the parent folder does not exist.
        IsADirectoryError: If ``path`` is a folder.
        PermissionError: If the user may write neither to the parent folder nor to an existing file.
        OSError: If ``path`` is a symbolic link that leads back to itself.
    """
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' cannot be written: it is a folder, give the name of a file")
    target = _resolve(path)
    folder = target.parent
    if not folder.is_dir():
        missing = path.parent if target == path.absolute() else folder
        raise NotADirectoryError(f"'{path}' cannot be written: there is no folder '{missing}', create it first")
    if target.exists() and (not target.is_file() or not os.access(folder, os.W_OK)):
        if not os.access(target, os.W_OK):
            raise PermissionError(f"'{path}' cannot be written: you may not write to it")
    elif not os.access(folder, os.W_OK):
        raise PermissionError(f"'{path}' cannot be written: you may not write to '{path.parent}'")


@contextmanager
def atomic_write(path: Path) -> Iterator[TextIO]:
    """Open a text file for writing that replaces ``path`` at the end of the ``with`` block.

    The text goes to a temporary file in the same folder. If the block raises, the temporary file is deleted and an
    existing file at ``path`` stays as it was. The new file has the permissions of the file that it replaces. Links and
    devices are treated as described at the top of this module.

    Args:
        path: Path of the file.

    Yields:
        The temporary file, open for writing text in UTF-8.

    Raises:
        OSError: If ``path`` cannot be written (see :func:`check_writable`).
    """
    with (
        atomic_binary_write(path) as binary,
        io.TextIOWrapper(binary, newline="", encoding="utf-8", errors="surrogateescape") as file,
    ):
        yield file


@contextmanager
def atomic_binary_write(path: Path) -> Iterator[BinaryIO]:
    """Open a binary file for writing that replaces ``path`` at the end of the ``with`` block.

    Args:
        path: Path of the file, treated as by :func:`atomic_write`.

    Yields:
        The temporary file.

    Raises:
        OSError: If ``path`` cannot be written (see :func:`check_writable`).
    """
    check_writable(path)
    target = _resolve(path)
    if _is_written_directly(target):
        with target.open("ab") as file:  # What another program has written to the same stream stays.
            yield file
        return
    # A file in a folder that the user may not write to is overwritten at the end.
    folder = target.parent if os.access(target.parent, os.W_OK) else Path(tempfile.gettempdir())
    delete_abandoned_files(folder)
    staged = folder / f"{STAGING_PREFIX}{secrets.token_hex(8)}"
    try:
        # Nobody may read the new content who may not read the old one, and no link is followed.
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666
        with os.fdopen(os.open(staged, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _O_BINARY, mode), "wb") as file:
            yield file
        _move(staged, target)
    except OSError as error:
        if error.errno in FULL_DISK_ERRORS and error.filename is None:  # The system does not say which file it was.
            raise OSError(f"'{path}' cannot be written: {error.strerror}. An older file stays as it was") from None
        raise
    finally:
        staged.unlink(missing_ok=True)


def replace_file(complete: Path, path: Path) -> None:
    """Move a complete file to ``path``, with the permissions of the file that it replaces.

    Args:
        complete: The file to move, in the folder of ``path`` or elsewhere.
        path: Where to move it. Links and devices are treated as described at the top of this module.

    Raises:
        OSError: If ``path`` cannot be written.
    """
    check_writable(path)
    target = _resolve(path)
    same_device = complete.stat().st_dev == target.parent.stat().st_dev
    if same_device and os.access(target.parent, os.W_OK) and not _is_written_directly(target):
        _move(complete, target)
        return
    with complete.open("rb") as source, atomic_binary_write(path) as file:
        shutil.copyfileobj(source, file)
    complete.unlink()


def _move(complete: Path, target: Path) -> None:
    """Replace a regular file, or create it. Where a file cannot be replaced, its content is overwritten."""
    raise_if_stop_requested()
    if target.exists():
        old, new = target.stat(), complete.stat()
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            with suppress(OSError):  # Only the administrator may give files to another user.
                os.chown(complete, old.st_uid, old.st_gid)
        complete.chmod(stat.S_IMODE(old.st_mode))
    try:
        os.replace(complete, target)
    except OSError:
        # A mounted file, or one in a folder that the user may not change, can be written but not replaced.
        if not (target.is_file() and os.access(target, os.W_OK)):
            raise
        with complete.open("rb") as source, target.open("wb") as file:
            shutil.copyfileobj(source, file)
        complete.unlink()


def _is_written_directly(target: Path) -> bool:
    """Whether a path cannot be replaced: a device, pipe or socket, or a file that a process has open (``/proc``)."""
    return (target.exists() and not target.is_file()) or target.is_symlink()


def _resolve(path: Path) -> Path:
    """Follow symbolic links, except those in ``/proc``, which stand for open files rather than for paths.

    Raises:
        OSError: If the links lead in a circle.
    """
    target = path
    for _ in range(MAX_LINKS):
        folder = Path(os.path.realpath(target.parent))
        target = folder / target.name
        if not target.is_symlink() or folder.is_relative_to("/proc"):
            return target
        target = folder / os.readlink(target)
    raise OSError(f"'{path}' cannot be written: its symbolic links lead in a circle")
