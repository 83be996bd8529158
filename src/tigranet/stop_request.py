"""Whether the user has asked this process to stop.

A signal handler raises :class:`KeyboardInterrupt`, but code that catches every exception may swallow it. Parts of
PyTorch and numba do so while they are imported, and then compute in another way than usual. The request is therefore
remembered, and no result file is completed after it.
"""

import threading

_requested, _to_end = threading.Event(), threading.Event()


def request_stop(end: bool = False) -> None:
    """Remember that the user has asked this process to stop.

    Args:
        end: Whether the process is to end, as SIGTERM asks for, and not only what it is doing.
    """
    _requested.set()
    if end:
        _to_end.set()


def is_end_requested() -> bool:
    """Return whether the process is to end, and must not go on with anything else."""
    return _to_end.is_set()


def withdraw_stop() -> None:
    """Forget the request, because another piece of work begins."""
    _requested.clear()
    _to_end.clear()


def raise_if_stop_requested() -> None:
    """Stop before a result is written.

    Raises:
        KeyboardInterrupt: If the user has asked this process to stop.
    """
    if _requested.is_set():
        raise KeyboardInterrupt
