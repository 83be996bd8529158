import functools
import gzip
import hashlib
import http.server
import threading

import pytest
from rich.console import Console

from tigranet.data.sources import download
from tigranet.data.sources.mnist import PARTS

QUIET = Console(quiet=True)


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A server on this machine with four small files whose checksums are known."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    for part in PARTS:
        (folder / f"{part}.gz").write_bytes(gzip.compress(part.encode()))
    sums = {part: hashlib.md5((folder / f"{part}.gz").read_bytes()).hexdigest() for part in PARTS}
    monkeypatch.setattr(download, "MD5", sums)

    asked: list[str] = []

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", folder, asked
        server.shutdown()


def test_all_four_files_come_and_are_not_fetched_twice(mirror, tmp_path):
    url, folder, asked = mirror
    paths = download.fetch_mnist(tmp_path / "data", QUIET, (url,))
    assert [path.read_bytes() for path in paths] == [(folder / f"{part}.gz").read_bytes() for part in PARTS]
    assert len(asked) == 4
    assert download.fetch_mnist(tmp_path / "data", QUIET, (url,)) == paths
    assert len(asked) == 4


def test_the_second_mirror_helps_out(mirror, tmp_path):
    url, _, _ = mirror
    assert len(download.fetch_mnist(tmp_path / "data", QUIET, (f"{url}nowhere/", url))) == 4


def test_a_wrong_file_never_appears_and_the_good_ones_are_kept(mirror, tmp_path):
    url, folder, asked = mirror
    good = (folder / f"{PARTS[2]}.gz").read_bytes()
    (folder / f"{PARTS[2]}.gz").write_bytes(b"something else")
    with pytest.raises(OSError, match=r"no mirror gave t10k-images-idx3-ubyte\.gz .*what was fetched is kept"):
        download.fetch_mnist(tmp_path / "data", QUIET, (url,))
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == sorted(f"{part}.gz" for part in PARTS[:2])
    (folder / f"{PARTS[2]}.gz").write_bytes(good)
    asked.clear()
    assert len(download.fetch_mnist(tmp_path / "data", QUIET, (url,))) == 4
    assert len(asked) == 2


def test_no_network_is_one_error(tmp_path):
    with pytest.raises(OSError, match=r"no mirror gave train-images-idx3-ubyte\.gz"):
        download.fetch_mnist(tmp_path, QUIET, ("http://127.0.0.1:9/",))
