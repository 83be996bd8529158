"""Open files that are really files: opening a pipe or a device may block for ever or change its state."""

import io
import os
import stat
from pathlib import Path

from tigranet.data.image_errors import UnreadableImageError

BinaryFile = io.BufferedReader | io.BytesIO
"""An open file, on disk or in memory."""
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
"""Tests of a file mode, and the name of the kind that they recognise."""


def open_regular_file(path: Path) -> io.BufferedReader:
    """Open a regular file to read bytes. Links are followed.

    The kind is checked before the file is opened, and again on the open file, which nobody can exchange any more.

    Args:
        path: Path of the file.

    Returns:
        The open file.

    Raises:
        UnreadableImageError: If there is no such file, or if it is a folder, a pipe, a socket or a device, cannot be
            opened, or is empty.
    """
    try:
        _check_kind(os.stat(path))
        file = open(path, "rb", opener=_open_without_waiting)  # noqa: SIM115 (the caller closes it)
    except OSError as error:
        raise UnreadableImageError(error.strerror or str(error)) from None
    except UnreadableImageError:
        raise
    except ValueError:  # a NUL character in the path
        raise UnreadableImageError("not a valid file name") from None
    try:
        status = os.fstat(file.fileno())
        _check_kind(status)
        if status.st_size == 0:
            raise UnreadableImageError("the file is empty")
    except BaseException:
        file.close()
        raise
    return file


def _open_without_waiting(path: str, flags: int) -> int:
    """Open without waiting for the writer of a pipe. Windows has neither the flag nor such pipes."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _check_kind(status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((name for is_kind, name in KINDS if is_kind(status.st_mode)), "something else")
    raise UnreadableImageError(f"is {kind}, not a regular file")
