"""Whether the user has asked this process to stop.

A signal handler raises :class:`KeyboardInterrupt`, but code that catches every exception may swallow it. Parts of
PyTorch and numba do so while they are imported, and then compute in another way than usual. The request is therefore
remembered, and no result file is completed after it.
"""

import threading

_requested = threading.Event()


def request_stop() -> None:
    """Remember that the user has asked this process to stop."""
    _requested.set()


def withdraw_stop() -> None:
    """Forget the request, because another piece of work begins."""
    _requested.clear()


def raise_if_stop_requested() -> None:
    """Stop before a result is written.

    Raises:
        KeyboardInterrupt: If the user has asked this process to stop.
    """
    if _requested.is_set():
        raise KeyboardInterrupt
