"""Wait for files to be closed where the system lets this process open no more of them."""

import errno
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LIMIT_ERRORS = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of the system that say nothing about the file: this process, or all together, have too many open files."""
WAITING_SECONDS = 2.0
"""How long to wait for other threads and processes to close a file."""
PAUSE_SECONDS = 0.01
"""Time between two attempts."""


class TooManyOpenFilesError(OSError):
    """No further file can be opened. Unlike an unreadable image, this ends a command: no image is left out for it."""


def open_when_possible(open_file: Callable[[], T]) -> T:
    """Open a file, and wait if too many files are open.

    Several threads read images at once, and each closes its file after a moment. If the limit is low, a thread
    therefore waits for the others. Without the wait, their number would decide which images are read.

    Args:
        open_file: Opens the file. It is called again until it succeeds.

    Returns:
        What it returns.

    Raises:
        TooManyOpenFilesError: If the limit is still reached after :data:`WAITING_SECONDS`.
        OSError: Any other error of ``open_file``.

    Example:
        >>> open_when_possible(lambda: "open")
        'open'
    """
    end = time.monotonic() + WAITING_SECONDS
    while True:
        try:
            return open_file()
        except OSError as error:
            if error.errno not in LIMIT_ERRORS:
                raise
            if time.monotonic() > end:
                raise TooManyOpenFilesError(
                    error.errno, f"too many open files{_limit()}: raise this limit, or close other programs"
                ) from None
        time.sleep(PAUSE_SECONDS)


def _limit() -> str:
    """Return the limit in words, where the system has one for each process."""
    try:
        import resource
    except ImportError:  # Windows
        return ""
    return f" (ulimit -n is {resource.getrlimit(resource.RLIMIT_NOFILE)[0]})"
