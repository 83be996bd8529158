"""The server as a process: its address, its log, its limits on real connections, and how it stops."""

import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress

import numpy as np
import pytest
from PIL import Image

from tigranet.serving.server import bind, serve, url_of
from tigranet.workflows.predict import predict

SERVE = [sys.executable, "-c", "from tigranet.cli import main; main()", "serve"]


def png(side):
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (side, side), dtype=np.uint8)).save(file, "PNG")
    return file.getvalue()


class Server:
    """A server process and the lines of its log."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [*SERVE, *map(str, arguments), "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines = []
        while not self.lines or self.lines[-1]["event"] != "ready":
            self.lines.append(json.loads(self.process.stdout.readline()))
        self.url = self.lines[-1]["url"]
        self.port = int(self.url.rpartition(":")[2])

    def post(self, body, path="/predict", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        content = json.loads(response.read())
        connection.close()
        return response.status, content

    def stop(self, number=signal.SIGTERM):
        """Send a signal, and return the exit code and what was printed to stderr."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        self.lines += [json.loads(line) for line in out.splitlines()]
        return self.process.returncode, err


@pytest.fixture(scope="module")
def server(grey_model):
    server = Server(grey_model, "--timeout", "1.5", "--max-body", "1", "--max-requests", "4", "--device", "cpu")
    yield server
    if server.process.poll() is None:
        server.stop(signal.SIGKILL)


@pytest.fixture
def connect(server):
    """Open a connection to the server and send bytes."""
    with ExitStack() as stack:

        def connected(data):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            connection.sendall(data)
            return connection

        yield connected


def header(length, path="/predict"):
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n\r\n".encode()


def received(connection):
    """Return all that arrives until the server closes the connection."""
    with suppress(ConnectionResetError):  # it is closed before all was read
        return b"".join(iter(lambda: connection.recv(65536), b""))
    return b""


def test_the_process_answers_as_predict_does(server, grey_model, tmp_path):
    (tmp_path / "image.png").write_bytes(png(30))
    (expected,) = predict(grey_model, tmp_path / "image.png", device="cpu").predictions
    status, answer = server.post(png(30))
    assert (status, answer["label"]) == (200, expected.label)
    assert answer["probability"] == pytest.approx(expected.probability, abs=2e-6)


def test_hostile_connections_do_not_disturb_others(server, connect):
    answer = server.post(png(30))
    slow = connect(header("Content-Length: 100") + b"half")
    garbage = [
        connect(content)
        for content in (b"\0\xff\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", header("Content-Length: -1"), b"A" * 200_000)
    ]
    for connection in garbage:
        assert connection.recv(100).startswith(b"HTTP/1.1 4")
    connect(header("Content-Length: 5") + b"ab").close()
    assert server.post(bytes(2**20 + 1))[0] == 413
    assert server.post(png(30), Host="rebound.example")[0] == 421
    endless = connect(header("Transfer-Encoding: chunked"))
    with suppress(ConnectionError):  # the server closes the connection at its limit
        for _ in range(1000):
            endless.sendall(b"10000\r\n" + bytes(2**16) + b"\r\n")
        pytest.fail("the server received 64 MiB, its limit is 1 MiB")
    assert received(slow).startswith(b"HTTP/1.1 408")
    assert server.post(png(30)) == answer


def test_an_address_in_use_is_named(grey_model):
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert url_of(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(OSError, match=rf"{port}.*in use.*--port"):
            serve({"grey": grey_model}, port=port)
    with pytest.raises(OSError, match=r"no\.such\.host\.invalid"):
        bind("no.such.host.invalid", 0)


def test_errors_of_models_are_raised_before_the_server_starts(tmp_path):
    with pytest.raises(FileNotFoundError, match="nosuch"):
        serve({"x": tmp_path / "nosuch"}, port=0)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_addresses_of_ipv6_are_written_in_brackets():
    try:
        with bind("::1", 0) as reserved:
            assert url_of(reserved).startswith("http://[::1]:")
    except OSError:
        pytest.skip(f"{os.uname().sysname} has no IPv6 loopback address here")


def test_the_server_finishes_requests_in_work_before_it_stops(server, connect):
    """The last test of the module, because it stops the server."""
    content = png(30)
    last = connect(header(f"Content-Length: {len(content)}"))
    time.sleep(0.2)
    finish = threading.Timer(0.4, last.sendall, [content])
    finish.start()
    code, err = server.stop(signal.SIGTERM)
    finish.join()
    response = received(last)
    assert response.startswith(b"HTTP/1.1 200")
    assert b'"label"' in response
    assert (code, err) == (0, "")
    assert [line["event"] for line in server.lines if line["event"] != "request"][-2:] == ["stopping", "stopped"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))
    assert not [line for line in server.lines if line.get("status") == 500]
