"""A process is measured, limited and interrupted from outside."""

import os
import signal

from torture.complete_files import visible_files
from torture.images import CLASSES, write_images
from torture.moments import AfterSeconds, WhenFileAppears
from torture.process import Process, run


def test_a_process_ends_with_its_code_output_time_and_memory(tmp_path):
    outcome = run(("--help",), tmp_path, {})
    assert outcome.code == 0
    assert "train" in outcome.stdout
    assert outcome.seconds > 0
    assert outcome.peak_bytes > 10_000_000
    assert not outcome.has_traceback
    assert not outcome.has_orphans


def test_limits_of_the_shell_apply(tmp_path):
    outcome = run(("--help",), tmp_path, {}, limits="-v 1000")
    assert outcome.code != 0


def test_a_signal_comes_at_its_moment(tmp_path):
    process = Process(("data", "list"), tmp_path, {})
    process.wait_until_ready()
    AfterSeconds(0.01).wait(process, tmp_path)
    assert process.send(signal.SIGKILL)
    assert process.finish(is_interrupted=True).code == -signal.SIGKILL


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
