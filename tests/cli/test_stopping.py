"""Ctrl-C and SIGTERM stop a command at any moment, after its clean-up, without a traceback, by their own exit codes."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from tigranet.atomic_files import atomic_write
from tigranet.cli.stopping import INTERRUPTED, TERMINATED, stop_on_signals

SLOW_IMPORT = """
import sys, threading, os, signal, time
from tigranet.cli import main

class SlowFinder:
    def find_spec(self, name, path=None, target=None):
        if name == "tigranet.cli.app":
            print("importing", flush=True)
            time.sleep(60)

sys.meta_path.insert(0, SlowFinder())
main()
"""


@pytest.fixture(autouse=True)
def _ctrl_c_is_not_ignored():
    """Shells start jobs in the background with SIGINT ignored, and child processes inherit this."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def test_the_exit_codes_are_those_of_the_shell():
    assert (INTERRUPTED, TERMINATED) == (130, 143)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)])
def test_a_signal_stops_the_block_after_its_clean_up(number, code, capsys):
    cleaned = []

    @stop_on_signals()
    def work():
        try:
            os.kill(os.getpid(), number)
            threading.Event().wait(10)
        finally:
            cleaned.append(True)

    with pytest.raises(SystemExit) as exit_:
        work()
    assert exit_.value.code == code
    assert cleaned
    assert capsys.readouterr().err == "tigranet: stopped\n"


def test_a_command_that_handles_the_interrupt_itself_still_exits_with_the_code_of_sigterm():
    @stop_on_signals()
    def work():
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait(10)
        sys.exit(INTERRUPTED)

    with pytest.raises(SystemExit) as exit_:
        work()
    assert exit_.value.code == TERMINATED


def test_an_interrupt_that_other_code_swallows_stops_the_command_before_it_replaces_a_file(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("older")

    @stop_on_signals()
    def work():
        with suppress(BaseException):  # as parts of PyTorch and numba do while they are imported
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait(10)
        with atomic_write(path) as file:
            file.write("new")

    with pytest.raises(SystemExit) as exit_:
        work()
    assert exit_.value.code == TERMINATED
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("answers.csv", "older")]
    with stop_on_signals(), atomic_write(path) as file:  # the next command is not affected
        file.write("new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("code", [0, 1, 2, INTERRUPTED])
def test_other_exit_codes_pass(code):
    with pytest.raises(SystemExit) as exit_, stop_on_signals():
        sys.exit(code)
    assert exit_.value.code == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_previous_handler_is_restored(number):
    previous = signal.getsignal(number)
    with stop_on_signals():
        assert signal.getsignal(number) != previous
    assert signal.getsignal(number) == previous


def test_ctrl_c_stays_ignored_in_a_job_in_the_background():
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stop_on_signals():
            os.kill(os.getpid(), signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)])
def test_a_signal_while_an_object_is_deleted_stops_the_block_a_moment_later(number, code, capsys):
    """Python would print the exception as ignored, and the command would go on."""
    deleted = []

    class Signalling:
        def __del__(self):
            os.kill(os.getpid(), number)
            self.finish()

        def finish(self):
            deleted.append(True)

    @stop_on_signals()
    def work():
        Signalling()
        threading.Event().wait(10)

    with pytest.raises(SystemExit) as exit_:
        work()
    assert exit_.value.code == code
    assert deleted
    assert capsys.readouterr().err == "tigranet: stopped\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)])
def test_a_signal_inside_a_function_that_c_code_calls_stops_the_block_a_moment_later(number, code, capsys):
    @ctypes.CFUNCTYPE(None)
    def called_from_c():
        os.kill(os.getpid(), number)
        time.sleep(0.01)

    previous = sys.unraisablehook

    @stop_on_signals()
    def work():
        called_from_c()
        threading.Event().wait(10)

    with pytest.raises(SystemExit) as exit_:
        work()
    assert exit_.value.code == code
    assert capsys.readouterr().err == "tigranet: stopped\n"
    assert sys.unraisablehook is previous


def test_outside_the_main_thread_no_handler_is_needed():
    results = []

    def work():
        with stop_on_signals():
            results.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == ["done"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)])
def test_a_signal_while_modules_are_imported_prints_no_traceback(number, code):
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_IMPORT, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(number)
        assert process.stderr.read() == "tigranet: stopped\n"
    assert process.returncode == code
