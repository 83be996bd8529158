"""A process is measured, limited and interrupted from outside."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from torture.complete_files import visible_files
from torture.images import CLASSES, write_images
from torture.moments import AfterSeconds, WhenFileAppears
from torture.process import Process, run


def test_a_process_ends_with_its_code_output_and_time(tmp_path):
    outcome = run(("--help",), tmp_path, {})
    assert outcome.code == 0
    assert "train" in outcome.stdout
    assert outcome.seconds > 0
    assert not outcome.has_traceback
    assert not outcome.has_orphans


def test_the_memory_of_a_process_is_that_of_its_own(tmp_path):
    """The system counts the memory of the process that starts it, so that must be small, as in a run of torture."""
    code = (
        "import sys; from pathlib import Path; from torture.process import run\n"
        "print(run(('--help',), Path(sys.argv[1]), {}).peak_bytes)\n"
        "ballast = bytearray(b'1') * 300_000_000\n"
        "print(run(('--help',), Path(sys.argv[1]), {}).peak_bytes)"
    )
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", code, str(tmp_path)]
    small, unknown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split()
    assert 20_000_000 < int(small) < 300_000_000
    assert int(unknown) == 0


def test_limits_of_the_shell_apply(tmp_path):
    outcome = run(("--help",), tmp_path, {}, limits="-v 1000")
    assert outcome.code != 0


def test_a_signal_comes_at_its_moment(tmp_path):
    process = Process(("data", "list"), tmp_path, {})
    process.wait_until_ready()
    AfterSeconds(0.01).wait(process, tmp_path)
    assert process.send(signal.SIGKILL)
    assert process.finish().code == -signal.SIGKILL


def test_waiting_ends_with_the_process_and_then_no_signal_is_sent(tmp_path):
    process = Process(("--version-of-nothing",), tmp_path, {})
    WhenFileAppears("never", 0.0).wait(process, tmp_path)
    assert not process.send(signal.SIGKILL)
    assert process.finish().code == 2


def test_a_new_file_is_a_moment_and_an_older_one_is_not(tmp_path):
    (tmp_path / "old").write_text("")
    os.utime(tmp_path / "old", (0, 0))
    process = Process(("--help",), tmp_path, {})
    (tmp_path / "new").write_text("")
    WhenFileAppears("new", 0.0).wait(process, tmp_path)
    is_sent = process.send(signal.SIGKILL)
    assert process.finish().code == -signal.SIGKILL
    assert is_sent
    process = Process(("--help",), tmp_path, {})
    WhenFileAppears("old", 0.0).wait(process, tmp_path)
    assert not process.send(signal.SIGKILL)
    assert process.finish().code == 0


def test_images_are_the_same_each_time(tmp_path):
    for name in ("first", "second"):
        write_images(tmp_path / name, per_class=2, size=8)
    first, second = ([path.read_bytes() for path in visible_files(tmp_path / name)] for name in ("first", "second"))
    assert first == second
    assert len(first) == 2 * len(CLASSES)
