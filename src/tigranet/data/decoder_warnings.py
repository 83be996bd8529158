"""Keep the warnings of image decoders from the user, who receives a reason for each file that cannot be read."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

DECODERS = r"(PIL|tifffile)(\.|$)"
"""Pattern of the modules whose warnings are ignored."""

_lock = threading.Lock()
_num_threads = 0
_outer_filters = warnings.catch_warnings()


@contextmanager
def without_decoder_warnings() -> Iterator[None]:
    """Ignore the warnings of image decoders for the duration of a ``with`` statement.

    The filters of Python's warnings belong to the process. The first of several threads changes them, and the last one
    restores them.
    """
    global _num_threads, _outer_filters
    with _lock:
        if _num_threads == 0:
            _outer_filters = warnings.catch_warnings()
            _outer_filters.__enter__()
            warnings.filterwarnings("ignore", module=DECODERS)
        _num_threads += 1
    try:
        yield
    finally:
        with _lock:
            _num_threads -= 1
            if _num_threads == 0:
                _outer_filters.__exit__(None, None, None)
