"""Stop a command without a traceback, with its clean-up, when a signal asks for it."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C."""
TERMINATED = 128 + signal.SIGTERM
"""Exit code after SIGTERM, which ``kill``, ``timeout`` and the schedulers of clusters send."""


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Let SIGTERM stop the block as Ctrl-C does, so that temporary files are deleted and checkpoints can be resumed.

    Yields:
        Nothing.

    Raises:
        SystemExit: If a signal stopped the block: with 130 after Ctrl-C and 143 after SIGTERM.
    """
    is_terminated = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal is_terminated
        is_terminated = True
        raise KeyboardInterrupt

    is_main_thread = threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGTERM, interrupt) if is_main_thread else None
    try:
        yield
    except KeyboardInterrupt:
        print("tigranet: stopped", file=sys.stderr)
        sys.exit(TERMINATED if is_terminated else INTERRUPTED)
    except SystemExit:
        if is_terminated:
            sys.exit(TERMINATED)
        raise
    finally:
        if is_main_thread:
            signal.signal(signal.SIGTERM, previous)
