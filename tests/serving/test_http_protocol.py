import asyncio
import http.client
import socket
import threading
import time

import pytest
import uvicorn
from starlette.responses import Response

from tigranet.serving.http_protocol import DeadlineProtocol
from tigranet.serving.server import GracefulServer, bind

SECONDS = 1
"""Time for a header."""


async def answers_slowly(scope, receive, send):
    await asyncio.sleep(1.5 * SECONDS if scope["path"] == "/slow" else 0)
    await Response("hello")(scope, receive, send)


@pytest.fixture
def port():
    reserved = bind("127.0.0.1", 0)
    config = uvicorn.Config(
        answers_slowly, http=DeadlineProtocol, ws="none", lifespan="off", log_config=None, timeout_keep_alive=SECONDS
    )
    server = GracefulServer(config)
    thread = threading.Thread(target=server.run, args=([reserved],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield reserved.getsockname()[1]
    server.should_exit = True
    thread.join()


def test_slow_headers_close_the_connection_and_slow_answers_do_not(port):
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
    slow = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    slow.request("GET", "/slow")
    silent, dripping = connections
    silent.settimeout(10)
    for _ in range(200):
        try:
            dripping.sendall(b"G")
        except OSError:  # the other end is closed
            break
        time.sleep(0.1)
    else:
        pytest.fail("a header may arrive byte by byte for ever")
    assert silent.recv(1) == b""
    assert slow.getresponse().read() == b"hello"
    slow.request("GET", "/")  # a connection may be used again in time
    assert slow.getresponse().read() == b"hello"
    for connection in (*connections, slow):
        connection.close()
