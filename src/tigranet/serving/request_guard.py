"""What happens around every request: access, limits, headers against misuse in browsers, log and metrics."""

import asyncio
import json
import logging
import re
import time
import uuid
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tigranet.serving.access import has_token, is_local_name
from tigranet.serving.limits import ServerLimits
from tigranet.serving.metrics import ServerMetrics
from tigranet.serving.structured_log import log_event

PUBLIC_PATHS = re.compile(r"/v2/health/(live|ready)|/(index\.html)?|/static/.*")
"""What needs no token: health, and the files of the web page, which a browser cannot request with a token."""
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page may load scripts, styles, images and data from this server only. It draws the user's images in a canvas."""
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Headers of every response."""
LOG_FIELDS = "tigranet.log_fields"
"""Key of the ASGI scope, under which an endpoint puts further values for the log once it has received the body."""
CLIENT_CLOSED_REQUEST = 499
"""Status in the log and in the metrics of a request whose client did not wait for the answer."""

DISCARDED_BODIES = 4
"""A body that is too large is received and discarded up to this multiple of the limit. If the connection were closed
while the client still sends, the client would see an error of the network instead of the answer."""


class RequestError(HTTPException):
    """A request that cannot be answered.

    Args:
        status: HTTP status.
        message: What was expected, what was received, and the remedy.
        headers: Further HTTP headers.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, message, dict(headers or {}))


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response for an error, with the object that the Open Inference Protocol defines.

    Args:
        status: HTTP status.
        message: The message.
        headers: Further HTTP headers.

    Returns:
        A response with a JSON object.
    """
    return Response(json.dumps({"error": message}), status, headers, "application/json")


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Read the body of a request into memory.

    Args:
        request: The request.
        max_bytes: Largest number of bytes.

    Returns:
        The body.

    Raises:
        RequestError: If the body is larger. The connection is closed, and of a body of more than
            :data:`DISCARDED_BODIES` times the limit the rest is not received.
    """
    too_large = RequestError(413, f"expected a body of at most {max_bytes:,} bytes", {"Connection": "close"})
    declared = request.headers.get("content-length", "0")
    waits_for_permission = request.headers.get("expect", "").lower() == "100-continue"
    most = max_bytes if waits_for_permission else DISCARDED_BODIES * max_bytes
    if declared.isascii() and declared.isdigit() and (len(declared) > 18 or int(declared) > most):
        raise too_large
    body, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise too_large
        if size <= max_bytes:
            body += chunk
    if size > max_bytes:
        raise too_large
    return bytes(body)


class RequestGuard:
    """An ASGI application around another one.

    Args:
        app: The inner application.
        limits: The limits of the server.
        metrics: The counters of the server.
        token: The bearer token that requests must carry. None needs no token.
        local_only: Whether to refuse requests that name another host than this machine.
    """

    def __init__(
        self, app: ASGIApp, limits: ServerLimits, metrics: ServerMetrics, token: str | None, local_only: bool
    ) -> None:
        self.app, self.limits, self.metrics, self.token, self.local_only = app, limits, metrics, token, local_only
        self._in_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request.

        Args:
            scope: The ASGI scope.
            receive: Receives the body.
            send: Sends the response.
        """
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["app"] = self  # with it, the routes raise HTTPException instead of answering in plain text
        start, request_id, status = time.perf_counter(), uuid.uuid4().hex, 0
        response_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, response_started
            if message["type"] == "http.response.start":
                status, response_started = message["status"], True
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers["X-Request-ID"] = request_id
            await send(message)

        failure: Response | None = None
        try:
            async with asyncio.timeout(self.limits.request_seconds):
                await self._handle(scope, receive, send_with_headers)
        except HTTPException as error:
            message = error.detail
            if error.status_code == 405:
                message = f"expected the method {(error.headers or {}).get('Allow', 'GET')}, got {scope['method']}"
            failure = error_response(error.status_code, message, error.headers)
        except TimeoutError:
            message = f"the request took longer than {self.limits.request_seconds:g} seconds: send a smaller one"
            failure = error_response(504 if LOG_FIELDS in scope else 408, message, {"Connection": "close"})
        except ClientDisconnect:
            status = CLIENT_CLOSED_REQUEST
        except Exception as error:
            message = f"internal error, see the log of the server for the request {request_id}"
            failure = error_response(500, message, {"Connection": "close"})
            log_event("error", level=logging.ERROR, error=error, request=request_id)
        if failure is not None and not response_started:
            await failure(scope, receive, send_with_headers)
        self._record(scope, status, time.perf_counter() - start, request_id)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if self.local_only and not is_local_name(headers.get("host")):
            raise RequestError(
                421, "this server answers requests to localhost only: start it with --host to change that"
            )
        is_public = PUBLIC_PATHS.fullmatch(scope["path"])
        if not is_public and not has_token(headers.get("authorization"), self.token):
            expected = "expected the header 'Authorization: Bearer TOKEN' with the token of this server"
            raise RequestError(401, expected, {"WWW-Authenticate": "Bearer", "Connection": "close"})
        if scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        if self._in_work >= self.limits.concurrent_requests:
            busy = f"{self._in_work} requests are in work, which is the limit: try again"
            raise RequestError(503, busy, {"Retry-After": "1", "Connection": "close"})
        self._in_work += 1
        self.metrics.in_work.inc()
        try:
            await self.app(scope, receive, send)
        finally:
            self._in_work -= 1
            self.metrics.in_work.dec()

    def _record(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        endpoint = getattr(scope.get("endpoint"), "__name__", "other")
        self.metrics.requests.labels(endpoint, str(status)).inc()
        self.metrics.seconds.labels(endpoint).observe(seconds)
        log_event(
            "request",
            method=scope["method"],
            path=scope["path"],
            status=status,
            seconds=round(seconds, 6),
            request=request_id,
            **scope.get(LOG_FIELDS, {}),
        )
