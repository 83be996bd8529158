import pytest

from tigranet.atomic_files import atomic_write


def test_a_file_appears_when_it_is_whole(tmp_path):
    with atomic_write(tmp_path / "out.txt") as file:
        file.write("half")
        assert not (tmp_path / "out.txt").exists()
        file.write(" and half")
    assert (tmp_path / "out.txt").read_text() == "half and half"
    assert len(list(tmp_path.iterdir())) == 1


def test_an_error_leaves_the_old_file_and_no_other(tmp_path):
    (tmp_path / "out.csv").write_text("precious")

    def fail():
        with atomic_write(tmp_path / "out.csv") as file:
            file.write("half")
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "precious"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with (
        pytest.raises(NotADirectoryError, match="cannot be written: there is no folder"),
        atomic_write(tmp_path / "no" / "x"),
    ):
        pass
