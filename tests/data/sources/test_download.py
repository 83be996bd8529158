import functools
import gzip
import hashlib
import http.server
import threading

import pytest
from rich.console import Console

from tigranet.data.sources import download
from tigranet.data.sources.mnist import IDX_NAMES

QUIET = Console(quiet=True)


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A local server with four small files, its folder, and the list of requested paths."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    for name in IDX_NAMES:
        (folder / f"{name}.gz").write_bytes(gzip.compress(name.encode()))
    checksums = {name: hashlib.md5((folder / f"{name}.gz").read_bytes()).hexdigest() for name in IDX_NAMES}
    monkeypatch.setattr(download, "MD5", checksums)

    requests: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            requests.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", folder, requests
        server.shutdown()


def test_four_files_are_downloaded_once(mirror, tmp_path):
    url, folder, requests = mirror
    paths = download.fetch_mnist(tmp_path / "data", QUIET, (url,))
    assert [path.read_bytes() for path in paths] == [(folder / f"{name}.gz").read_bytes() for name in IDX_NAMES]
    assert len(requests) == 4
    assert download.fetch_mnist(tmp_path / "data", QUIET, (url,)) == paths
    assert len(requests) == 4


def test_the_second_mirror_is_used_if_the_first_fails(mirror, tmp_path):
    url, _, _ = mirror
    assert len(download.fetch_mnist(tmp_path / "data", QUIET, (f"{url}nowhere/", url))) == 4


def test_a_file_with_a_wrong_checksum_is_not_kept_and_the_others_are(mirror, tmp_path):
    url, folder, requests = mirror
    good = (folder / f"{IDX_NAMES[2]}.gz").read_bytes()
    (folder / f"{IDX_NAMES[2]}.gz").write_bytes(b"something else")
    with pytest.raises(OSError, match=rf"t10k-images-idx3-ubyte\.gz.*data'.*kept.*{url}"):
        download.fetch_mnist(tmp_path / "data", QUIET, (url,))
    files = sorted(path.name for path in (tmp_path / "data").iterdir())
    assert files == sorted(f"{name}.gz" for name in IDX_NAMES[:2])
    (folder / f"{IDX_NAMES[2]}.gz").write_bytes(good)
    requests.clear()
    assert len(download.fetch_mnist(tmp_path / "data", QUIET, (url,))) == 4
    assert len(requests) == 2


def test_without_a_network_the_error_names_the_file_and_the_mirror(tmp_path):
    with pytest.raises(OSError, match=r"train-images-idx3-ubyte\.gz.*http://127\.0\.0\.1:9/"):
        download.fetch_mnist(tmp_path, QUIET, ("http://127.0.0.1:9/",))
