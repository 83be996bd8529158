"""A folder belongs to one training at a time, and is free again however that training ends."""

import os
import signal
import subprocess
import sys

import pytest

from tigranet.workflows import exclusive_output as module
from tigranet.workflows.exclusive_output import hold_folder, hold_output
from tigranet.workflows.train import train

HOLD = """
import sys
from pathlib import Path
from tigranet.workflows.exclusive_output import hold_folder
with hold_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def workflow(output, *, error=None):
    """Stand for a training."""
    with hold_output(output):
        if error is not None:
            raise error
        return output


def test_a_folder_that_another_process_holds_is_refused_until_that_process_is_killed(tmp_path):
    folder = tmp_path / "model"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(OSError, match=r"another process.*model"):
            workflow(folder)
        assert workflow(tmp_path / "other") == tmp_path / "other"
        process.send_signal(signal.SIGKILL)
    assert workflow(folder) == folder


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt()])
def test_the_folder_is_free_after_an_error_even_if_its_traceback_is_kept(tmp_path, error):
    """A notebook keeps the last traceback, and with it the local variables of the workflow."""
    with pytest.raises(type(error)) as kept:
        workflow(tmp_path, error=error)
    assert workflow(tmp_path) == tmp_path
    assert kept.tb is not None
    assert os.listdir(tmp_path) == []  # no lock file


def test_a_workflow_within_a_workflow_releases_its_own_folder_only(tmp_path):
    with hold_output(tmp_path / "outer"):
        workflow(tmp_path / "inner")
        with hold_folder(tmp_path / "inner"), pytest.raises(OSError, match="outer"):
            workflow(tmp_path / "outer")
    with hold_folder(tmp_path / "outer"):
        pass


def test_no_folder_and_further_processes_of_one_training_hold_nothing(tmp_path, monkeypatch):
    assert workflow(None) is None
    monkeypatch.setattr(module, "is_first_process", lambda: False)
    with hold_folder(tmp_path):
        assert workflow(tmp_path) == tmp_path


def test_a_system_or_file_system_without_locks_is_no_error(tmp_path, monkeypatch):
    class WithoutLocks:
        LOCK_EX = LOCK_NB = 0

        @staticmethod
        def flock(descriptor, operation):
            raise OSError(95, "Operation not supported")

    for replacement in (WithoutLocks, None):
        monkeypatch.setattr(module, "fcntl", replacement)
        with hold_folder(tmp_path / "new"), hold_folder(tmp_path / "new"):
            pass


def test_a_folder_that_is_held_is_refused_before_training_and_one_among_the_images_is_no_class(tmp_path, folder):
    settings = {"architecture": "SC[2,2]-S[2]", "recipe": {"epochs": 1}}
    with hold_folder(tmp_path / "model"), pytest.raises(OSError, match="another process"):
        train(folder, tmp_path / "model", **settings)
    trained = train(folder, folder / "model", **settings)
    assert "model" not in trained.data.class_names
