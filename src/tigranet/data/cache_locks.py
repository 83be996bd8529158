"""Locks on files of a cache that several processes use. The system releases them when a process ends or is killed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows, which refuses to delete files in use by itself
    fcntl = None  # type: ignore[assignment]

STALL_SECONDS = 30.0
"""How long to wait for a process that holds a lock and makes no progress."""


@contextmanager
def exclusive_lock(path: Path, progress: Callable[[], Any]) -> Iterator[bool]:
    """Hold a lock that one process has at a time.

    A process that has the lock is waited for as long as it makes progress. The lock file is deleted afterwards.

    Args:
        path: Path of the lock file. Its folder must exist.
        progress: Returns a value that changes while the process that has the lock makes progress.

    Yields:
        True, or False if the file system has no locks.

    Raises:
        TimeoutError: If the process that has the lock makes no progress for :data:`STALL_SECONDS`.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    state = progress()
    is_held = False
    while not is_held:
        try:
            lock.acquire(timeout=STALL_SECONDS)
            is_held = True
        except Timeout:
            if state == (state := progress()):
                raise TimeoutError(f"another process has locked '{path}' and makes no progress") from None
        except (OSError, NotImplementedError):
            break
    try:
        yield is_held
    finally:
        if is_held:
            with suppress(OSError):
                path.unlink()  # while the lock is held: a process that waits for it notices and locks a new file
            lock.release()


def mark_as_used(file: IO[bytes]) -> None:
    """Mark an open file as used, until it and all memory maps of it are closed. Without locks, do nothing.

    Args:
        file: The file.
    """
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def is_used(path: Path) -> bool:
    """Whether a process has marked a file as used (see :func:`mark_as_used`).

    Args:
        path: Path of the file.

    Returns:
        True if the file is used, or belongs to somebody else or has disappeared, so that it should not be deleted.
        False if it is not used, or without locks.
    """
    if fcntl is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)  # NFS locks only what may be written
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
