import io
import json
import logging

from tigranet.serving.structured_log import SERVER_LOGGER, configure_log, log_event


def test_every_event_is_one_json_object_in_one_line():
    stream = io.StringIO()
    configure_log(stream)
    log_event("request", path="/\n\x1b[0m" + "x" * 1000, status=200, models=["a"])
    log_event("error", level=logging.ERROR, error=RuntimeError("two\nlines"))
    logging.getLogger(SERVER_LOGGER).warning("Invalid HTTP request received.")
    first, second, third = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first["event"] == "request"
    assert first["status"] == 200
    assert len(first["path"]) < 300
    assert (second["level"], third["level"]) == ("error", "warning")
    assert "RuntimeError" in second["traceback"]


def test_a_closed_stream_does_not_stop_the_server(capsys):
    stream = io.StringIO()
    configure_log(stream)
    stream.close()
    log_event("request")
    assert capsys.readouterr().err == ""
