"""Let only one process at a time write the results of a training to a folder.

Two trainings that write to one folder would leave the weights of one beside the record of the other.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tigranet.training import is_first_process

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def hold_output(folder: Path | None) -> Iterator[None]:
    """Create the output folder of a workflow, and hold it within the block.

    Enter the block after the data have been read: an empty folder among folders of images would be a class without
    images. Of several processes that train together, the first one holds the folder for all.

    Args:
        folder: The folder, or None if nothing is saved.

    Yields:
        Nothing.

    Raises:
        OSError: If another process holds the folder, or if the folder cannot be created.
    """
    with hold_folder(folder) if folder is not None and is_first_process() else nullcontext():
        yield


@contextmanager
def hold_folder(folder: Path, activity: str = "is training a model in") -> Iterator[None]:
    """Hold a folder; the system releases it when the process ends, however it ends.

    Nothing is held where the system or the file system has no locks.

    Args:
        folder: The folder. It is created if it does not exist.
        activity: What a process does that holds the folder, for the message.

    Yields:
        Nothing.

    Raises:
        OSError: If another process holds the folder, or if the folder cannot be created.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(f"another process {activity} '{folder}': wait until it ends, or use another folder") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(descriptor)
