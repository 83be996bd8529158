import os

import pytest

from tigranet.atomic_files import atomic_write, check_writable


def test_the_file_appears_only_when_it_is_complete(tmp_path):
    with atomic_write(tmp_path / "out.txt") as file:
        file.write("first part")
        assert not (tmp_path / "out.txt").exists()
        file.write(" and second part")
    assert (tmp_path / "out.txt").read_text() == "first part and second part"
    assert len(list(tmp_path.iterdir())) == 1


def test_after_an_error_only_the_old_file_exists(tmp_path):
    (tmp_path / "out.csv").write_text("old content")

    def fail():
        with atomic_write(tmp_path / "out.csv") as file:
            file.write("first part")
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "old content"


def test_the_error_names_a_missing_parent_folder(tmp_path):
    with pytest.raises(NotADirectoryError, match=r"missing/x.*missing'"), atomic_write(tmp_path / "missing" / "x"):
        pass


def test_a_folder_cannot_be_written_as_a_file(tmp_path):
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        check_writable(tmp_path)


def test_a_read_only_folder_is_reported_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"out\.txt.*may not write"):
        check_writable(tmp_path / "out.txt")
