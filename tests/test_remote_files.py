"""Files in stores: what is absent is an error at once, and a store that fails is asked again."""

import sys

import fsspec
import pytest

from tigranet import remote_files
from tigranet.data.image_content import RemoteImage
from tigranet.data.image_errors import UnreadableImageError
from tigranet.remote_files import ATTEMPTS, RemoteFiles, is_url


@pytest.fixture
def root(tmp_path):
    files = fsspec.filesystem("memory")
    for name in ("b.png", "a.png", "sub/c.png", ".hidden/d.png"):
        files.pipe_file(f"/{tmp_path.name}/{name}", name.encode())
    return f"memory://{tmp_path.name}"


def test_find_lists_files_in_order(root):
    store = RemoteFiles(root)
    assert store.find(root) == [f"{root}/{name}" for name in ("a.png", "b.png", "sub/c.png")]
    assert store.find(f"{root}/?.png") == [f"{root}/a.png", f"{root}/b.png"]
    assert store.find(f"{root}/a.png") == [f"{root}/a.png"]
    with pytest.raises(FileNotFoundError, match="nothing"):
        store.find(f"{root}/nothing")


def test_read_write_size_and_open(root, tmp_path):
    store = RemoteFiles(root)
    store.write(f"{root}/new", b"content")
    assert (store.read(f"{root}/new"), store.size(f"{root}/new")) == (b"content", 7)
    (tmp_path / "local").write_bytes(b"uploaded")
    store.upload(tmp_path / "local", f"{root}/new")
    with store.open(f"{root}/new") as file:
        assert file.read(2) == b"up"


@pytest.mark.parametrize("error", [ConnectionError("reset"), RuntimeError("of a library")])
def test_a_store_that_fails_is_asked_again(root, monkeypatch, error):
    store, failures = RemoteFiles(root), []
    read = store._fs.cat_file

    def fail_at_first(path):
        if len(failures) < ATTEMPTS - 1:
            failures.append(path)
            raise error
        return read(path)

    monkeypatch.setattr(remote_files, "FIRST_PAUSE", 0)
    monkeypatch.setattr(store._fs, "cat_file", fail_at_first)
    assert store.read(f"{root}/a.png") == b"a.png"
    failures[:] = []
    monkeypatch.setattr(store._fs, "cat_file", lambda path: (_ for _ in ()).throw(error))
    with pytest.raises(OSError, match=str(error)):
        RemoteImage(f"{root}/a.png").square(4, False)  # not a reason to skip the image


def test_an_absent_image_has_a_reason(root):
    with pytest.raises(UnreadableImageError, match="no such file"):
        RemoteImage(f"{root}/z.png").square(4, False)


def test_unknown_kinds_of_urls(monkeypatch):
    with pytest.raises(ValueError, match="nosuch://"):
        RemoteFiles("nosuch://a")
    remote_files._file_system.cache_clear()
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ModuleNotFoundError, match=r"tigranet\[remote\]"):
        RemoteFiles("s3://bucket")


def test_urls_are_told_from_paths():
    assert [is_url(text) for text in ("s3://b/c", "http://a", "a/b", "/a", "C:\\a", "a:b")] == [True] * 2 + [False] * 4


def test_predictions_do_not_import_the_engines(torch_process):
    code = """import sys; import tigranet.workflows.predict, tigranet.workflows.bulk_prediction, tigranet.serving
print([name for name in ("fsspec", "ray", "pyspark", "daft", "pyarrow", "lightning") if name in sys.modules])"""
    assert torch_process.run(code).stdout.strip() == "[]"
