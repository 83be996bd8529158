"""HTTP connections with a time limit for the header of each request."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class DeadlineProtocol(H11Protocol):
    """Closes a connection if the header of its next request does not arrive in time.

    The time is that of uvicorn's option ``timeout_keep_alive``, which on its own ends with the first byte.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time for the first request.

        Args:
            transport: The connection.
        """
        super().connection_made(transport)
        self._restart_deadline()

    def on_response_complete(self) -> None:
        """Start the time for the next request."""
        super().on_response_complete()
        self._restart_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time.

        Args:
            exc: Why the connection was lost.
        """
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _restart_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.timeout_keep_alive, self._close_unless_in_work)

    def _close_unless_in_work(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
