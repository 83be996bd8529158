import gzip
import io
import os
import tarfile

import pytest

from tigranet.data.sources import packed_files
from tigranet.data.sources.packed_files import read_packed_files

FILES = {"a.bin": b"first", "b.bin": b"second"}


def pack(path, members, compress=True):
    """Write an archive of files, by name; a tarfile.TarInfo instead of bytes is written without content."""
    with tarfile.open(path, "w:gz" if compress else "w") as archive:
        for name, content in members.items():
            member = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    return path


@pytest.fixture(params=["folder", "archive"])
def packed(request, tmp_path):
    """A function that writes files to a folder or to an archive."""

    def write(members):
        if request.param == "archive":
            return pack(tmp_path / "packed.tar.gz", {f"inner/{name}": content for name, content in members.items()})
        for name, content in members.items():
            (tmp_path / name).write_bytes(content)
        return tmp_path

    return write


def test_files_are_read_by_name_and_others_are_skipped(packed):
    path = packed({"readme.html": b"nothing", **FILES, "other": b""})
    assert dict(read_packed_files(path, list(FILES), 6)) == FILES


def test_a_missing_file_is_named(packed):
    with pytest.raises(ValueError, match=r"b\.bin"):
        list(read_packed_files(packed({"a.bin": b"first"}), list(FILES), 6))


def test_a_file_that_is_too_large_is_named(packed):
    with pytest.raises(ValueError, match=r"b\.bin has more than 5 bytes"):
        list(read_packed_files(packed(FILES), list(FILES), 5))


def test_an_archive_is_read_in_its_own_order(tmp_path):
    path = pack(tmp_path / "a.tar.gz", dict(reversed(FILES.items())))
    assert [name for name, _ in read_packed_files(path, list(FILES), 6)] == ["b.bin", "a.bin"]


def test_links_in_an_archive_are_not_followed(tmp_path):
    (tmp_path / "secret").write_text("secret")
    link = tarfile.TarInfo("a.bin")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
    path = pack(tmp_path / "a.tar.gz", {"a.bin": link})
    with pytest.raises(ValueError, match=r"no a\.bin"):
        list(read_packed_files(path, ["a.bin"], 100))


def test_nothing_is_written_outside_the_archive(tmp_path):
    path = pack(tmp_path / "a.tar.gz", {"../../a.bin": b"first"})
    assert dict(read_packed_files(path, ["a.bin"], 100)) == {"a.bin": b"first"}
    assert list(tmp_path.iterdir()) == [path]


def test_an_archive_that_unpacks_to_too_many_bytes_is_refused(tmp_path):
    path = pack(tmp_path / "bomb.tar.gz", {"zeros": bytes(packed_files.OTHER_BYTES + 2**20), **FILES})
    assert path.stat().st_size < 2**16
    with pytest.raises(ValueError, match=f"unpacks to more than {packed_files.OTHER_BYTES + 12:,} bytes"):
        list(read_packed_files(path, list(FILES), 6))


def test_a_header_that_announces_too_many_bytes_is_refused(tmp_path):
    """tarfile reads extended headers as a whole, whatever size they announce."""
    header = tarfile.TarInfo("a.bin")
    header.type, header.size = tarfile.XHDTYPE, 2**33
    path = tmp_path / "header.tar.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT))
        file.write(bytes(packed_files.OTHER_BYTES + 2**20))
    with pytest.raises(ValueError, match="unpacks to more than"):
        list(read_packed_files(path, list(FILES), 6))


def test_an_archive_of_too_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(packed_files, "MAX_MEMBERS", 3)
    path = pack(tmp_path / "a.tar.gz", {"1": b"", "2": b"", "3": b"", **FILES})
    with pytest.raises(ValueError, match="more than 3 files"):
        list(read_packed_files(path, list(FILES), 6))


def test_a_truncated_archive_is_refused_at_any_length(tmp_path):
    content = pack(tmp_path / "a.tar.gz", {name: os.urandom(600) for name in FILES}).read_bytes()
    path = tmp_path / "truncated.tar.gz"
    for length in range(0, len(content) - 100, 50):
        path.write_bytes(content[:length])
        with pytest.raises((ValueError, OSError)):
            list(read_packed_files(path, list(FILES), 600))


@pytest.mark.parametrize(
    "content",
    [b"<html>not found</html>", b"\x1f\x8b\x08" + bytes(100), gzip.compress(b"x" * 999)],
    ids=["page", "damaged header", "no archive inside"],
)
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(content)
    with pytest.raises((ValueError, OSError)):
        list(read_packed_files(path, list(FILES), 6))


def test_an_archive_that_is_not_compressed_is_refused(tmp_path):
    with pytest.raises(OSError, match="gzip"):
        list(read_packed_files(pack(tmp_path / "a.tar.gz", FILES, compress=False), list(FILES), 6))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.bin")
    for path in (tmp_path, tmp_path / "a.bin"):
        with pytest.raises(ValueError, match="pipe"):
            list(read_packed_files(path, ["a.bin"], 6))
