import io
import os
from pathlib import Path

import pytest

from tigranet.data import UnreadableFile
from tigranet.data import path_list as module
from tigranet.data.path_list import MAX_PATH_BYTES, listed_paths, read_start, split_list


class Trickle(io.BytesIO):
    """A stream that gives one byte at a time, like a slow pipe."""

    def read1(self, size=-1):
        return super().read1(1)


def split(content, stream=io.BytesIO):
    source = stream(content)
    return list(split_list(source, Path("list"), read_start(source), Path("f")))


@pytest.mark.parametrize("stream", [io.BytesIO, Trickle])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a.png\nb c.png\n", ["a.png", "b c.png"]),
        (b"a.png\r\n\r\nb.png", ["a.png", "b.png"]),
        (b"a\nb.png\0c.png\0", ["a\nb.png", "c.png"]),
        (b"\0\0a.png", ["a.png"]),
        (b"\xef\xbb\xbfa.png\n", ["a.png"]),
        (b"# not a comment.png\n/abs.png\n", ["# not a comment.png", "/abs.png"]),
        (b"caf\xe9.png\n", [os.fsdecode(b"caf\xe9.png")]),
        (b"", []),
        (b"\n\n", []),
    ],
)
def test_lines_or_nul_separate_paths(content, expected, stream):
    assert split(content, stream) == [Path("f") / path for path in expected]


def test_any_number_of_paths_is_split_as_python_splits_them():
    paths = [f"folder {number}/{'x' * (number % 200)}.png" for number in range(5000)]
    for separator in (b"\n", b"\0"):
        assert split(separator.join(map(os.fsencode, paths))) == [Path("f") / path for path in paths]


@pytest.mark.parametrize("separator", [b"\n", b"\0"])
@pytest.mark.parametrize("stream", [io.BytesIO, Trickle])
def test_an_entry_that_is_no_path_is_reported_once_and_the_next_one_read(separator, stream):
    long = b"x" * (3 * MAX_PATH_BYTES)
    first, bad, last = split(separator.join([b"a.png", long, b"b.png"]), stream)
    assert (first, last) == (Path("f/a.png"), Path("f/b.png"))
    assert isinstance(bad, UnreadableFile)
    assert len(bad.reason) < 300


def test_utf_16_and_endless_lists_are_refused(monkeypatch):
    (result,) = split("a.png\n".encode("utf-16"))
    assert "UTF-8" in result.reason
    monkeypatch.setattr(module, "MAX_LIST_BYTES", 100_000)

    class Zeros(io.BytesIO):
        def read1(self, size=-1):
            return bytes(size)

    (result,) = split(b"", Zeros)
    assert "100,000" in result.reason


def test_paths_of_a_file_are_relative_to_its_folder(tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("a.png\nsub/b.png\n")
    assert list(listed_paths(file)) == [tmp_path / "a.png", tmp_path / "sub" / "b.png"]
    file.write_text("")
    (result,) = listed_paths(file)
    assert result == UnreadableFile(file, "the file is empty")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are those of Unix")
def test_a_list_that_cannot_be_read_is_reported(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.txt")
    (result,) = listed_paths(tmp_path / "pipe.txt")
    assert "pipe" in result.reason
    monkeypatch.setattr(module, "MAX_LIST_BYTES", 3)
    (tmp_path / "list.txt").write_text("a.png")
    (result,) = listed_paths(tmp_path / "list.txt")
    assert "at most 3 bytes" in result.reason
