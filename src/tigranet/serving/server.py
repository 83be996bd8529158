"""Run a server: bind an address, load the models, answer requests, and stop gracefully."""

import os
import pickle
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn
from uvicorn.supervisors import Multiprocess

from tigranet.choices import InferencePrecision
from tigranet.serving.access import is_loopback
from tigranet.serving.application import create_application
from tigranet.serving.http_protocol import DeadlineProtocol
from tigranet.serving.limits import ServerLimits
from tigranet.serving.predictor import Predictor
from tigranet.serving.request_guard import RequestGuard
from tigranet.serving.structured_log import configure_log, log_event
from tigranet.workflows.unknown_detection import AUTO

WORKER_START_SECONDS = 60
"""A worker process that does not respond for this time is replaced. Importing PyTorch takes many seconds on a busy
machine, and a worker that is replaced while it imports never starts."""


class GracefulServer(uvicorn.Server):
    """A server that finishes the requests in work after SIGINT or SIGTERM, and then returns as after any other end."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM within the block. Unlike in the base class, they are not raised again after it.

        Yields:
            Nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        previous = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ask the server to stop. A second Ctrl-C stops it at once.

        Args:
            sig: The signal.
            frame: Where it arrived.
        """
        super().handle_exit(sig, frame)
        log_event("stopping", signal=signal.Signals(sig).name)


def bind(host: str, port: int) -> socket.socket:
    """Reserve an address. Clients cannot connect yet.

    Args:
        host: Host name or address.
        port: Number of the port; 0 chooses a free one.

    Returns:
        The socket.

    Raises:
        OSError: If the address cannot be used, for example because another program uses it.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        reserved = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OSError(f"cannot use the address {host}: {error.strerror or error}") from None
    try:
        if os.name == "posix":  # elsewhere the option would let two servers share a port
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(address)
    except OSError as error:
        reserved.close()
        raise OSError(f"cannot use port {port} of {host}: {error.strerror}, choose another with --port") from None
    return reserved


def url_of(reserved: socket.socket) -> str:
    """Return the address of a server.

    Args:
        reserved: The socket of the server.

    Returns:
        The address for a browser on this machine or, if the server is bound to one address, on others.
    """
    host, port = reserved.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def page_url_of(reserved: socket.socket) -> str:
    """Return the address of the web page of a server, for a browser.

    Args:
        reserved: The socket of the server.

    Returns:
        The address. A server that is bound to all addresses of this machine is reached by its loopback address.
    """
    host, port = reserved.getsockname()[:2]
    loopback = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
    return f"http://{loopback[host]}:{port}/" if host in loopback else f"{url_of(reserved)}/"


def serve(
    models: Mapping[str, str | Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    device: str = "auto",
    precision: InferencePrecision = "32",
    reject: float = 0.0,
    unknown: str | float = AUTO,
    limits: ServerLimits | None = None,
    workers: int = 1,
    on_start: Callable[[str], None] = lambda page_url: None,
) -> None:
    """Serve models over HTTP until SIGINT or SIGTERM arrives.

    The log goes to standard output, one JSON object per line. Its event ``ready`` says that a process answers requests.

    Args:
        models: Folders of saved models, or names of models that come with the package, by the names to serve them as.
        host: Address to listen on. The default can be reached from this machine only.
        port: Port to listen on; 0 chooses a free one, which the log names.
        token: Bearer token that requests must carry. None needs no token.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        precision: Precision of the graph layers, see :meth:`tigranet.TIGraNet.compute_in`.
        reject: Below this probability the label is 'unknown'.
        unknown: The share of images of known classes to accept, ``auto`` or ``off``, as for
            :class:`~tigranet.serving.predictor.Predictor`.
        limits: What a request may ask for, in each process.
        workers: Number of processes that answer requests. A worker that dies is replaced, and only its own requests
            are lost.
        on_start: Called with the address of the web page, before the models are warmed up.

    Raises:
        FileNotFoundError: If a model does not exist.
        ValueError: If a model is damaged or has no image size, or if an argument is invalid.
        OSError: If the address cannot be used.
    """
    limits = limits or ServerLimits()
    if workers < 1:
        raise ValueError(f"expected at least 1 worker, got {workers}")
    predictors = {
        name: Predictor(model, device=device, precision=precision, reject=reject, unknown=unknown)
        for name, model in models.items()
    }
    with bind(host, port) as reserved:
        for predictor in predictors.values():
            predictor.network  # noqa: B018 (errors of the files, before the server starts)
        if workers > 1:  # this process need not keep the networks
            predictors = pickle.loads(pickle.dumps(predictors))
        configure_log()
        config = uvicorn.Config(
            partial(_create_logging_application, predictors, limits, token, is_loopback(host)),
            factory=True,
            workers=workers,
            http=DeadlineProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=limits.connections,
            timeout_keep_alive=max(1, round(limits.header_seconds)),
            timeout_worker_healthcheck=WORKER_START_SECONDS,
            timeout_graceful_shutdown=max(1, round(limits.shutdown_seconds)),
        )
        on_start(page_url_of(reserved))
        log_event("starting", url=url_of(reserved), models=list(predictors), workers=workers)
        if workers == 1:
            GracefulServer(config).run([reserved])
        else:
            Multiprocess(config, [reserved]).run()
    log_event("stopped")


def _create_logging_application(
    predictors: Mapping[str, Predictor], limits: ServerLimits, token: str | None, local_only: bool
) -> RequestGuard:
    """Create the application in the process that runs it, which may be a worker process with a log of its own."""
    configure_log()
    return create_application(predictors, limits=limits, token=token, local_only=local_only)
