import pytest

from tigranet.workflows.bulk_prediction.answer_folder import AnswerFolder


@pytest.fixture(params=["local", "memory"])
def folder(request, tmp_path):
    return AnswerFolder.at(tmp_path / "a" if request.param == "local" else f"memory://{tmp_path.name}/a/")


def test_files_are_written_and_read(folder):
    assert folder.names() == []
    with folder.hold():
        folder.write("b", b"1")
        with folder.writing("a") as file:
            file.write(b"2")
    assert folder.names() == ["a", "b"]
    with folder.open("a") as file:
        assert file.read() == b"2"


def test_after_an_error_there_is_no_file(folder):
    def fail():
        with folder.hold(), folder.writing("a") as file:
            file.write(b"1")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert folder.names() == []


def test_a_local_folder_is_written_by_one_process_at_a_time(tmp_path):
    folder = AnswerFolder.at(tmp_path)
    with folder.hold(), pytest.raises(OSError, match="writing answers"), folder.hold():
        pass
