import asyncio
import json

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tigranet.serving import request_guard
from tigranet.serving.limits import ServerLimits
from tigranet.serving.metrics import ServerMetrics
from tigranet.serving.request_guard import RequestGuard, read_body


@pytest.fixture
def events(monkeypatch):
    """The lines of the log."""
    lines = []
    monkeypatch.setattr(request_guard, "log_event", lambda event, **fields: lines.append((event, fields)))
    return lines


def call(app, *, messages=None, limits=None, token=None, local_only=False, **scope):
    """Send a request to an application inside the guard. Return the status, the headers and the body."""
    guard = RequestGuard(app, limits or ServerLimits(), ServerMetrics(), token, local_only)
    return asyncio.run(send(guard, messages, **scope))


async def send(guard, messages=None, *, method="POST", path="/x", headers=()):
    scope = {"type": "http", "method": method, "path": path, "query_string": b"secret=1", "headers": list(headers)}
    waiting = iter(messages or [{"type": "http.request", "body": b"", "more_body": False}])
    answer = {"status": None, "headers": {}, "body": b""}

    async def receive():
        if (message := next(waiting, None)) is None:
            await asyncio.sleep(60)
        return message

    async def collect(message):
        if message["type"] == "http.response.start":
            answer["status"] = message["status"]
            answer["headers"] = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            answer["body"] += message.get("body", b"")

    await guard(scope, receive, collect)
    return answer["status"], answer["headers"], answer["body"]


async def hello(scope, receive, send):
    await Response("hello")(scope, receive, send)


async def reads_body(scope, receive, send):
    body = await read_body(Request(scope, receive), 10)
    await Response(str(len(body)))(scope, receive, send)


def chunk(size, more=True):
    return {"type": "http.request", "body": bytes(size), "more_body": more}


def test_every_response_has_the_headers_against_misuse(events):
    status, headers, body = call(hello)
    assert (status, body) == (200, b"hello")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    ((event, fields),) = events
    assert event == "request"
    assert fields["request"] == headers["x-request-id"]
    assert "secret" not in str(fields)


def test_a_body_may_be_as_large_as_the_limit(events):
    assert call(reads_body, messages=[chunk(6), chunk(4, more=False)])[2] == b"10"


@pytest.mark.parametrize(
    "header", [[(b"content-length", b"41")], [(b"content-length", b"9" * 30)],
               [(b"content-length", b"11"), (b"expect", b"100-continue")]]
)  # fmt: skip
def test_a_body_that_is_declared_much_too_large_is_not_read(events, header):
    """Nor one that the client does not send before the server asks for it."""
    status, headers, body = call(reads_body, messages=iter(()), headers=header)
    assert (status, headers["connection"]) == (413, "close")
    assert "10 bytes" in json.loads(body)["error"]


def test_a_body_that_is_too_large_is_read_to_its_end(events):
    """So that the client, which may not read before it has sent everything, gets the answer."""
    messages = iter([chunk(6), chunk(30), chunk(4, more=False)])
    assert call(reads_body, messages=messages, headers=[(b"content-length", b"40")])[0] == 413
    assert next(messages, None) is None


def test_a_body_that_becomes_much_too_large_is_read_no_further(events):
    messages = iter([chunk(6), chunk(30), chunk(5), chunk(5)])
    assert call(reads_body, messages=messages)[0] == 413
    assert next(messages, None) is not None


def test_a_slow_body_is_given_up(events):
    status, headers, body = call(reads_body, messages=[chunk(1)], limits=ServerLimits(request_seconds=0.05))
    assert (status, headers["connection"]) == (408, "close")
    assert "0.05 seconds" in json.loads(body)["error"]


def test_a_slow_answer_is_given_up(events):
    async def slow(scope, receive, send):
        scope[request_guard.LOG_FIELDS] = {"images": 1}
        await asyncio.sleep(60)

    assert call(slow, limits=ServerLimits(request_seconds=0.05))[0] == 504


def test_a_client_that_goes_away_is_no_error(events):
    async def disconnected(scope, receive, send):
        raise ClientDisconnect

    assert call(disconnected)[0] is None
    assert [(event, fields["status"]) for event, fields in events] == [("request", 499)]


def test_an_unexpected_error_is_logged_and_its_message_is_not_sent(events):
    async def fails(scope, receive, send):
        raise RuntimeError("a detail")

    status, _, body = call(fails)
    assert status == 500
    assert b"a detail" not in body
    assert events[0][0] == "error"
    assert events[0][1]["request"] in json.loads(body)["error"]


def test_an_error_after_the_start_of_the_response_sends_no_second_one(events):
    async def fails_late(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError

    assert call(fails_late)[0] == 200


def test_more_requests_than_the_limit_are_refused_at_once(events):
    async def many():
        release = asyncio.Event()

        async def waits(scope, receive, send):
            await release.wait()
            await hello(scope, receive, send)

        guard = RequestGuard(waits, ServerLimits(concurrent_requests=2), ServerMetrics(), None, False)
        tasks = [asyncio.create_task(send(guard)) for _ in range(5)]
        await asyncio.sleep(0.01)
        release.set()
        first = [status for status, _, _ in await asyncio.gather(*tasks)]
        return first, (await send(guard))[0]

    statuses, later = asyncio.run(many())
    assert sorted(statuses) == [200, 200, 503, 503, 503]
    assert later == 200


@pytest.mark.parametrize(
    ("path", "authorization", "expected"),
    [
        ("/x", None, 401),
        ("/x", b"Bearer wrong", 401),
        ("/x", b"Bearer \xff", 401),
        ("/x", b"Bearer 0123456789abcdef", 200),
        ("/v2/health/live", None, 200),
        ("/v2/health/ready", None, 200),
        ("/", None, 200),
        ("/static/app.js", None, 200),
        ("/v2/health/ready/../../models", None, 401),
        ("/metrics", None, 401),
    ],
)
def test_a_token_is_required_except_for_health_and_the_page(events, path, authorization, expected):
    headers = [] if authorization is None else [(b"authorization", authorization)]
    status, answer, _ = call(hello, token="0123456789abcdef", path=path, headers=headers)
    assert status == expected
    assert answer.get("www-authenticate") == ("Bearer" if expected == 401 else None)


def test_a_local_server_answers_no_other_host_names(events):
    assert call(hello, local_only=True, headers=[(b"host", b"rebound.example")])[0] == 421
    assert call(hello, local_only=True)[0] == 421
    assert call(hello, local_only=True, headers=[(b"host", b"localhost:8000")])[0] == 200
