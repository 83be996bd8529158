"""Stop a command without a traceback, with its clean-up, when a signal asks for it."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from tigranet.stop_request import request_stop, withdraw_stop

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C."""
TERMINATED = 128 + signal.SIGTERM
"""Exit code after SIGTERM, which ``kill``, ``timeout`` and the schedulers of clusters send."""
RETRY_SECONDS = 0.02
"""When to try again after a signal that arrived where an exception cannot pass."""


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Let SIGTERM stop the block as Ctrl-C does, so that temporary files are deleted and checkpoints can be resumed.

    Python prints exceptions inside ``__del__`` methods and inside functions that C code calls, such as those of numba,
    and then ignores them. A signal that arrives there therefore stops the block a moment later, and nothing is printed.
    Should other code swallow the exception, the block stops when it completes a file, see
    :mod:`tigranet.stop_request`.

    Yields:
        Nothing.

    Raises:
        SystemExit: If a signal stopped the block: with 130 after Ctrl-C and 143 after SIGTERM.
    """
    is_terminated = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal is_terminated
        is_terminated = is_terminated or number == signal.SIGTERM
        request_stop(is_terminated)
        if _is_inside_del(frame):
            _send_later(number)
        else:
            raise KeyboardInterrupt

    ignored_by_python = sys.unraisablehook

    def handle_ignored(ignored: "sys.UnraisableHookArgs") -> None:
        if isinstance(ignored.exc_value, KeyboardInterrupt):
            _send_later(signal.SIGTERM if is_terminated else signal.SIGINT)
        else:
            ignored_by_python(ignored)

    with ExitStack() as stack:
        withdraw_stop()
        stack.callback(withdraw_stop)
        stack.callback(setattr, sys, "unraisablehook", ignored_by_python)
        sys.unraisablehook = handle_ignored
        try:
            if threading.current_thread() is threading.main_thread():
                for number in (signal.SIGINT, signal.SIGTERM):
                    # A shell starts background jobs with Ctrl-C ignored, and it should stay so.
                    if signal.getsignal(number) != signal.SIG_IGN:
                        stack.callback(signal.signal, number, signal.signal(number, interrupt))
            yield
        except KeyboardInterrupt:
            print("tigranet: stopped", file=sys.stderr)
            sys.exit(TERMINATED if is_terminated else INTERRUPTED)
        except SystemExit:
            if is_terminated:
                sys.exit(TERMINATED)
            raise


def _send_later(number: int) -> None:
    """Send this process a signal in a moment."""
    retry = threading.Timer(RETRY_SECONDS, os.kill, (os.getpid(), number))
    retry.daemon = True
    retry.start()


def _is_inside_del(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
