import os
import socket

import pytest

from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.regular_file import open_regular_file


def test_a_file_and_a_link_to_it_are_opened(tmp_path):
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "b").symlink_to("a")
    for name in ("a", "b"):
        with open_regular_file(tmp_path / name) as file:
            assert file.read() == b"text"


def test_special_files_are_refused_without_opening_them(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(tmp_path, os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{folder}/socket")  # the path itself may be too long for a socket
        finally:
            os.close(folder)
        for name, reason in (
            ("pipe", "a named pipe"),
            ("link", "a named pipe"),
            ("socket", "a socket"),
            ("folder", "a folder"),
            ("loop", "Too many levels"),
            ("empty", "empty"),
            ("missing", "No such file"),
            ("/dev/zero", "a character device"),
            ("a\0b", "file name"),
        ):
            with pytest.raises(UnreadableImageError, match=reason):
                open_regular_file(tmp_path / name)


def test_a_file_that_becomes_a_pipe_before_it_is_opened_does_not_block(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"text")
    status = os.stat(tmp_path / "a")
    (tmp_path / "a").unlink()
    os.mkfifo(tmp_path / "a")
    monkeypatch.setattr(os, "stat", lambda path: status)
    with pytest.raises(UnreadableImageError, match="a named pipe"):
        open_regular_file(tmp_path / "a")
