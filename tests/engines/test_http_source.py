"""Images, tar files and Parquet files on a web server."""

import functools
import http.server
import threading

import pytest

from bulk_sources import contents, names_of, read_answers, write_folder, write_parquet, write_tar
from tigranet.workflows.bulk_prediction import predict_source

pytest.importorskip("aiohttp", reason="aiohttp is not installed: 'make test-engines' installs it")
pytestmark = pytest.mark.filterwarnings("default")  # connections that aiohttp leaves open

COUNT = 6


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def address(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    handler = functools.partial(QuietHandler, directory=str(tmp_path / "site"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("source", ["photos/", "a.tar", "a.parquet"])
def test_sources_on_a_web_server(tmp_path, model, address, source):
    write_folder(tmp_path / "site" / "photos", COUNT)
    write_tar(tmp_path / "site" / "a.tar", COUNT)
    write_parquet(tmp_path / "site" / "a.parquet", COUNT)
    predict_source(model, f"{address}/{source}", tmp_path / "answers", workers=1, device="cpu")
    assert names_of(read_answers(tmp_path / "answers")) == list(contents(COUNT))
