"""Let only one process at a time write the results of a training to a folder."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from tigranet.training import is_first_process
from tigranet.workflows.output_folder import check_output_folder

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., Any])


def exclusive_output(function: F) -> F:
    """Decorate a workflow such that a second one with the same output folder is refused while the first one runs.

    Two trainings that write to one folder would leave the weights of one beside the record of the other.

    Args:
        function: The workflow. Its second argument is ``output``, a folder or None.

    Returns:
        The same function, except that it raises ``OSError`` if another process has the folder.
    """

    @wraps(function)
    def run(data: Any, output: str | Path | None = None, *args: Any, **options: Any) -> Any:
        if output is None or not is_first_process():  # processes that train together share the folder
            return function(data, output, *args, **options)
        with hold_folder(Path(output)):
            return function(data, output, *args, **options)

    return run  # type: ignore[return-value]


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Hold a folder; the system releases it when the process ends, however it ends.

    Nothing is held where the system or the file system has no locks.

    Args:
        folder: The folder. It is created if it does not exist, and deleted if it is still empty at the end.

    Yields:
        Nothing.

    Raises:
        OSError: If another process holds the folder, or if the folder cannot be written.
    """
    check_output_folder(folder, "model")
    if fcntl is None:
        yield
        return
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(
                f"another process is training a model in '{folder}': wait until it ends, or use another folder"
            ) from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(descriptor)
        if is_new:
            with suppress(OSError):  # it has files now
                folder.rmdir()
