"""The server on real connections: its answers, its limits, and how it stops."""

import http.client
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest
from benchmarks.serving import image_files, load
from PIL import Image

from tigranet.serving import server
from tigranet.serving.limits import ServerLimits
from tigranet.serving.server import bind, page_url_of, serve, url_of
from tigranet.workflows.predict import predict

LIMITS = ServerLimits(request_seconds=2.0, body_bytes=2**20, header_seconds=2.0)


def png(side=30):
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (side, side), dtype=np.uint8)).save(file, "PNG")
    return file.getvalue()


class Client:
    """Sends requests to a server on this machine."""

    def __init__(self, port):
        self.port, self.connections = port, ExitStack()

    def post(self, body, path="/predict", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def connect(self, data):
        """Open a connection and send bytes."""
        address = ("127.0.0.1", self.port)
        connection = self.connections.enter_context(socket.create_connection(address, timeout=10))
        connection.sendall(data)
        return connection

    def wait_until_ready(self):
        while True:
            with suppress(ConnectionError):
                self.connect(b"").close()
                return
            time.sleep(0.02)


def header(length):
    return f"POST /predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}\r\n\r\n".encode()


NO_REQUESTS = [
    b"\0\xff\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",  # HTTP/2
    b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(500),  # TLS
    b"GET / HTTP/1.1\r\n\r\n",  # no host
    b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: rebound.example\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"A" * 200_000,
    header("Content-Length: -1"),
    header("Content-Length: 4\r\nContent-Length: 5") + b"abcde",
    header("Content-Length: 4\r\nTransfer-Encoding: chunked") + b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    header("Transfer-Encoding: chunked") + b"ZZ\r\n\r\n",
]
"""What other programs, or those who look for gaps between two servers, send to a port."""


def received(connection):
    """Return all that arrives until the server closes the connection."""
    with suppress(ConnectionResetError):  # it is closed before all was read
        return b"".join(iter(lambda: connection.recv(65536), b""))
    return b""


@pytest.fixture
def while_serving(monkeypatch, capsys):
    """Serve a model in this process while a function of a client runs; return its result and the log."""

    def run(model, work):
        reserved = bind("127.0.0.1", 0)
        client = Client(reserved.getsockname()[1])
        monkeypatch.setattr(server, "bind", lambda host, port: reserved)

        def work_and_stop():
            try:
                client.wait_until_ready()
                return work(client)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        with ThreadPoolExecutor(1) as pool, client.connections:
            handler = signal.getsignal(signal.SIGTERM)
            result = pool.submit(work_and_stop)
            serve({"model": model}, device="cpu", limits=LIMITS)
            assert signal.getsignal(signal.SIGTERM) is handler
            with pytest.raises(ConnectionRefusedError):
                client.connect(b"")
            return result.result(), [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_the_server_answers_as_predict_does(while_serving, grey_model, tmp_path):
    (tmp_path / "image.png").write_bytes(png())
    (expected,) = predict(grey_model, tmp_path / "image.png", device="cpu").predictions
    (status, answer), log = while_serving(grey_model, lambda client: client.post(png()))
    assert (status, answer["label"]) == (200, expected.label)
    assert answer["probability"] == pytest.approx(expected.probability, abs=2e-6)
    events = [line["event"] for line in log]
    assert events[:3] + events[5:] == ["starting", "warmed up", "ready", "stopped"]
    assert set(events[3:5]) == {"request", "stopping"}  # a request is logged after the client has the answer
    assert log[0]["url"].startswith("http://127.0.0.1:")


def test_hostile_connections_do_not_disturb_others(while_serving, grey_model):
    def attack(client):
        answer = client.post(png())
        slow = client.connect(header("Content-Length: 100") + b"half")
        for content in NO_REQUESTS:
            assert client.connect(content).recv(100).startswith(b"HTTP/1.1 4"), content[:50]
        client.connect(header("Content-Length: 5") + b"ab").close()
        assert client.post(bytes(2**20 + 1))[0] == 413
        assert client.post(png(), Host="rebound.example")[0] == 421
        endless = client.connect(header("Transfer-Encoding: chunked"))
        with suppress(ConnectionError):  # the server closes the connection at its limit
            for _ in range(1000):
                endless.sendall(b"10000\r\n" + bytes(2**16) + b"\r\n")
            pytest.fail("the server received 64 MiB, its limit is 1 MiB")
        assert received(slow).startswith(b"HTTP/1.1 408")
        assert client.post(png()) == answer

    _, log = while_serving(grey_model, attack)
    statuses = {line["status"] for line in log if line["event"] == "request"}
    assert statuses == {200, 400, 408, 413, 421, 499}


def test_a_client_that_sends_too_much_gets_an_answer(while_serving, grey_model):
    """Also one that reads nothing before it has sent everything, as most clients do."""

    def attack(client):
        for size in [2**20 + 1, 2**22] * 10:
            status, answer = client.post(bytes(size))
            assert status == 413
            assert "1,048,576" in answer["error"]
        waiting = client.connect(header("Content-Length: 2000000\r\nExpect: 100-continue"))
        assert received(waiting).startswith(b"HTTP/1.1 413")  # without permission to send
        huge = client.connect(header("Content-Length: 9999999999"))
        assert received(huge).startswith(b"HTTP/1.1 413")

    while_serving(grey_model, attack)


def test_requests_in_work_are_finished_before_the_server_stops(while_serving, grey_model):
    content = png()

    def begin(client):
        connection = client.connect(header(f"Content-Length: {len(content)}"))
        time.sleep(0.1)
        finish = threading.Timer(0.3, connection.sendall, [content])
        finish.start()
        return ThreadPoolExecutor(1).submit(received, connection)

    response, log = while_serving(grey_model, begin)
    assert response.result().startswith(b"HTTP/1.1 200")
    assert [line["event"] for line in log[-3:]] == ["stopping", "request", "stopped"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_requests_of_the_page_are_answered(while_serving, grey_model, tmp_path):
    """``sh`` blocks of docs/serving.md; ``test_documents.py`` runs its Python."""
    (tmp_path / "photo.png").write_bytes(png())
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if not line.startswith("tigranet ")]
    assert sum(line.startswith("curl ") for line in lines) == 6

    def run(client):
        answers = []
        for line in lines:
            command = line.replace(":8000", f":{client.port}").replace("curl ", "curl --silent --fail ", 1)
            result = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=30)
            assert result.returncode == 0, line
            answers += [json.loads(result.stdout)] if line.startswith("curl ") else []
        return answers

    (first, second, explanation, metadata, inference, _), _ = while_serving(grey_model, run)
    assert first == second
    assert list(first) == ["model", "label", "probability", "probabilities", "unknown"]  # as the page shows
    assert first["label"] == explanation["label"] == explanation["explained_class"]
    assert metadata["inputs"][0]["name"] == "image"
    assert [output["name"] for output in inference["outputs"]] == [
        "label",
        "probability",
        "probabilities",
        "unknown",
    ]


def test_the_benchmark_counts_every_request(while_serving, grey_model):
    def measure(client):
        return load(client.port, os.getpid(), image_files(8), num_requests=20, num_clients=3)

    result, log = while_serving(grey_model, measure)
    assert result["statuses"] == {"200": 20}
    assert sum(line["event"] == "request" for line in log) == 20
    assert 0 < result["p50, ms"] <= result["p99, ms"]
    assert len(result["memory, MiB"]) == 11


def test_an_address_in_use_is_named(grey_model):
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert url_of(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(OSError, match=rf"{port}.*in use.*--port"):
            serve({"grey": grey_model}, port=port)
    with pytest.raises(OSError, match=r"no\.such\.host\.invalid"):
        bind("no.such.host.invalid", 0)


def test_wrong_models_and_arguments_are_refused_before_the_server_starts(tmp_path, grey_model):
    with pytest.raises(FileNotFoundError, match="nosuch"):
        serve({"x": tmp_path / "nosuch"}, port=0)
    with pytest.raises(ValueError, match=r"worker.*0"):
        serve({"x": grey_model}, port=0, workers=0)


def test_the_page_of_a_server_on_all_addresses_has_the_address_of_this_machine():
    with bind("0.0.0.0", 0) as reserved:
        assert page_url_of(reserved) == f"http://127.0.0.1:{reserved.getsockname()[1]}/"


def test_addresses_of_ipv6_are_written_in_brackets():
    try:
        with bind("::1", 0) as reserved:
            assert url_of(reserved).startswith("http://[::1]:")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback address")


@pytest.mark.skipif(os.name != "posix", reason="sends signals of Unix")
def test_a_killed_worker_loses_its_own_requests_only(grey_model):
    """One process for each worker, as on a user's machine."""
    command = [
        sys.executable,
        "-c",
        "from tigranet.cli import main; main()",
        "serve",
        str(grey_model),
        "--workers",
        "2",
    ]
    process = subprocess.Popen(
        [*command, "--workers", "2", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        log = [json.loads(process.stdout.readline())]
        while sum(line["event"] == "ready" for line in log) < 2:
            log.append(json.loads(process.stdout.readline()))
        client = Client(int(log[0]["url"].rpartition(":")[2]))
        content = png()
        with client.connections:
            client.wait_until_ready()
            in_work = [client.connect(header(f"Content-Length: {len(content)}")) for _ in range(8)]
            time.sleep(0.3)
            os.kill(log[-1]["process"], signal.SIGKILL)
            time.sleep(0.1)
            answers = []
            for connection in in_work:
                with suppress(ConnectionError):
                    connection.sendall(content)
                    answers.append(received(connection))
            finished = [answer for answer in answers if answer]
            assert all(answer.startswith(b"HTTP/1.1 200") for answer in finished)
            assert [client.post(content)[0] for _ in range(10)] == [200] * 10
        process.terminate()
        out, err = process.communicate(timeout=30)
        log += [json.loads(line) for line in out.splitlines()]
        served = sum(line["event"] == "request" for line in log)
        assert served == len(finished) + 10
        assert (process.returncode, log[-1]["event"]) == (0, "stopped")
        assert err == f"web page, once the models are loaded: {log[0]['url']}/\n"
    finally:
        process.kill()
        process.communicate()
