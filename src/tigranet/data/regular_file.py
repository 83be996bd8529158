"""Open regular files only: opening a named pipe or a device may block for ever or change its state."""

import io
import os
import stat
from pathlib import Path

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.open_file_limit import TooManyOpenFilesError, open_when_possible

BinaryFile = io.BufferedReader | io.BytesIO
"""An open file, on disk or in memory."""
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a character device",
}
"""Names of what a path can be besides a regular file, by file type."""


def open_regular_file(path: Path) -> io.BufferedReader:
    """Open a regular file to read bytes. Links are followed.

    The kind is checked before the file is opened, and again on the open file, which cannot be replaced any more.

    Args:
        path: Path of the file.

    Returns:
        The open file.

    Raises:
        UnreadableImageError: If there is no such file, or if it is a folder, a pipe, a socket or a device, cannot be
            opened, or is empty.
        TooManyOpenFilesError: If this process can open no further file.
    """
    try:
        _check_kind(os.stat(path))
        file = open_when_possible(lambda: open(path, "rb", opener=_open_without_waiting))  # noqa: SIM115 (closed by the caller)
    except TooManyOpenFilesError:
        raise
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


def kind_of_file(mode: int) -> str:
    """Name the kind of a file that is not a regular one.

    Args:
        mode: The mode of the file, from :func:`os.stat`.

    Returns:
        The kind, with an article.

    Example:
        >>> kind_of_file(os.stat(os.curdir).st_mode)
        'a folder'
    """
    return KINDS.get(stat.S_IFMT(mode), "a special file")


def _open_without_waiting(path: str, flags: int) -> int:
    """Open without waiting for the writer of a pipe. Windows has neither the flag nor such pipes."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _check_kind(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableImageError(f"is {kind_of_file(status.st_mode)}, not a regular file")
