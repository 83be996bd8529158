"""Limit the memory that all threads together use to decode images."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

MAX_DECODE_BYTES = 640 * 2**20
"""Memory for decoding images, summed over all threads of the process. An image that alone needs more is refused."""


class ByteBudget:
    """A number of bytes that threads share. Requests are served in the order in which they arrive.

    A thread may hold only one reservation at a time. As no reservation exceeds the limit, each request is granted as
    soon as the earlier ones are released, so threads cannot block each other for ever, and small requests do not
    overtake large ones.

    Args:
        limit: Number of bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._reserved = 0
        self._queue: deque[object] = deque()
        self._changed = threading.Condition()

    @contextmanager
    def reserve(self, num_bytes: int) -> Iterator[None]:
        """Wait until bytes are available, and hold them for the duration of a ``with`` statement.

        Args:
            num_bytes: Number of bytes.

        Raises:
            ValueError: If the number exceeds the limit.
        """
        if num_bytes > self.limit:
            raise ValueError(f"cannot reserve {num_bytes:,} of {self.limit:,} bytes")
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                self._changed.wait_for(lambda: self._queue[0] is ticket and self._reserved + num_bytes <= self.limit)
                self._reserved += num_bytes
            finally:  # also when the wait is interrupted
                self._queue.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._reserved -= num_bytes
                self._changed.notify_all()


DECODE_BUDGET = ByteBudget(MAX_DECODE_BYTES)
"""The budget of this process."""
