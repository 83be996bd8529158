"""A folder belongs to one training at a time, and is free again however that training ends."""

import os
import signal
import subprocess
import sys

import pytest

from tigranet.workflows import exclusive_output as module
from tigranet.workflows.exclusive_output import exclusive_output, hold_folder

HOLD = """
import sys
from pathlib import Path
from tigranet.workflows.exclusive_output import hold_folder
with hold_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@exclusive_output
def workflow(data, output=None, *, seed=0):
    """Stand for a training."""
    return data, output, seed


def test_a_folder_that_another_process_holds_is_refused_until_that_process_is_killed(tmp_path):
    folder = tmp_path / "model"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(OSError, match=r"another process.*model"):
            workflow("photos", folder)
        assert folder.is_dir()  # the one that is refused does not delete it
        assert workflow("photos", tmp_path / "other") == ("photos", tmp_path / "other", 0)
        process.send_signal(signal.SIGKILL)
    assert workflow("photos", str(folder), seed=3) == ("photos", str(folder), 3)


def test_the_folder_is_free_after_an_error(tmp_path):
    with pytest.raises(ValueError, match="bad"), hold_folder(tmp_path):
        raise ValueError("bad")
    with hold_folder(tmp_path):
        assert os.listdir(tmp_path) == []  # no lock file


def test_a_new_folder_stays_only_if_something_is_written(tmp_path):
    with hold_folder(tmp_path / "empty"):
        assert (tmp_path / "empty").is_dir()
    assert not (tmp_path / "empty").exists()
    with hold_folder(tmp_path / "full"):
        (tmp_path / "full" / "config.json").write_text("{}")
    assert (tmp_path / "full" / "config.json").exists()


def test_an_empty_folder_of_the_user_stays(tmp_path):
    with hold_folder(tmp_path):
        pass
    assert tmp_path.is_dir()


def test_no_folder_and_further_processes_of_one_training_hold_nothing(tmp_path, monkeypatch):
    assert workflow("photos") == ("photos", None, 0)
    monkeypatch.setattr(module, "is_first_process", lambda: False)
    with hold_folder(tmp_path):
        assert workflow("photos", tmp_path) == ("photos", tmp_path, 0)


def test_a_system_or_file_system_without_locks_is_no_error(tmp_path, monkeypatch):
    class WithoutLocks:
        LOCK_EX = LOCK_NB = 0

        @staticmethod
        def flock(descriptor, operation):
            raise OSError(95, "Operation not supported")

    for replacement in (WithoutLocks, None):
        monkeypatch.setattr(module, "fcntl", replacement)
        with hold_folder(tmp_path), hold_folder(tmp_path):
            pass


def test_a_file_is_refused_as_a_folder(tmp_path):
    (tmp_path / "model").write_text("")
    with pytest.raises(NotADirectoryError, match="model"):
        workflow("photos", tmp_path / "model")
