"""Run ``tigranet`` in a process of its own, with limits, and measure its time and peak memory."""

import os
import resource
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import IO

PROGRAM = "import os, sys; from tigranet.cli import main; os.write({ready}, b'.'); os.close({ready}); main()"
"""Run the command. The byte says that Python itself has started, which nothing in tigranet can influence."""
SECONDS_BEFORE_GIVING_UP = 300
"""A process that runs longer hangs, and is killed."""
SECONDS_TO_END = 2
"""How long the workers of a process may take to notice that it has ended."""


@dataclass(frozen=True)
class Outcome:
    """What a process left behind when it ended."""

    arguments: tuple[str, ...]
    """The arguments of ``tigranet``."""
    code: int
    """Exit code; negative for the signal that killed the process."""
    stdout: str
    """Standard output."""
    stderr: str
    """Standard error."""
    seconds: float
    """Duration."""
    peak_bytes: int
    """Largest resident memory."""
    has_orphans: bool = False
    """Whether other processes of its group were still running two seconds after it had ended."""

    @property
    def reason(self) -> str:
        """The line on standard error that says why a command failed, or the last line if a library ended it."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return next((line for line in lines if line.startswith("tigranet: ")), lines[-1] if lines else "")

    @property
    def has_traceback(self) -> bool:
        """Whether Python printed a traceback, also one of an error that it ignored."""
        return "Traceback (most recent call last)" in self.stderr or "Exception ignored in" in self.stderr


class Process:
    """A running ``tigranet`` in its own process group.

    Args:
        arguments: The arguments of the command.
        folder: The working folder.
        environment: Variables to set in addition to the current ones.
        limits: Options of ``ulimit``, such as ``-n 64``.
    """

    def __init__(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], limits: str = ""
    ) -> None:
        self.arguments = tuple(arguments)
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by finish
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by finish
        ready_end, child_end = os.pipe()
        command = [sys.executable, "-c", PROGRAM.format(ready=child_end), *arguments]
        if limits:
            command = ["sh", "-c", f"ulimit {limits} && exec {shlex.join(command)}"]
        self.start = perf_counter()
        self.child = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.errors,
            start_new_session=True,
            pass_fds=[child_end],
        )
        os.close(child_end)
        self.ready_end = ready_end

    def wait_until_ready(self) -> None:
        """Return once the process has imported ``tigranet.cli``, or has ended."""
        select.select([self.ready_end], [], [], SECONDS_BEFORE_GIVING_UP)

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended. It is not removed from the process table."""
        status = os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return status is None

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to the process group, as a terminal does.

        Args:
            number: The signal.

        Returns:
            Whether the process was still running.
        """
        if not self.is_running:
            return False
        os.killpg(self.child.pid, number)
        return True

    def finish(self) -> Outcome:
        """Wait for the end of the process.

        Returns:
            The exit code, the output, and the resources that were used.
        """
        cancel_kill = _kill_later(self.child.pid)
        try:
            _, status, usage = os.wait4(self.child.pid, 0)
        finally:
            cancel_kill()
        seconds = perf_counter() - self.start
        self.child.returncode = os.waitstatus_to_exitcode(status)
        os.close(self.ready_end)
        return Outcome(
            self.arguments,
            self.child.returncode,
            _read_and_close(self.output),
            _read_and_close(self.errors),
            seconds,
            _peak_bytes(usage),
            _has_orphans(self.child.pid),
        )


def _peak_bytes(usage: resource.struct_rusage) -> int:
    """Return the peak memory of a process; 0 if this process is larger, because the system counts its memory too."""
    own_peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    return usage.ru_maxrss * 1024 if usage.ru_maxrss > own_peak else 0


def run(arguments: Sequence[str], folder: Path, environment: Mapping[str, str], limits: str = "") -> Outcome:
    """Run ``tigranet`` to its end.

    Args:
        arguments: The arguments of the command.
        folder: The working folder.
        environment: Variables to set in addition to the current ones.
        limits: Options of ``ulimit``, such as ``-n 64``.

    Returns:
        The exit code, the output, and the resources that were used.
    """
    return Process(arguments, folder, environment, limits).finish()


def _kill_later(pid: int) -> Callable[[], None]:
    """Kill a process group after ``SECONDS_BEFORE_GIVING_UP``; the returned function cancels this."""
    timer = threading.Timer(SECONDS_BEFORE_GIVING_UP, os.killpg, (pid, signal.SIGKILL))
    timer.daemon = True
    timer.start()
    return timer.cancel


def _has_orphans(group: int) -> bool:
    """Whether processes of a group still run a moment after its first one has ended."""
    deadline = perf_counter() + SECONDS_TO_END
    while _group_runs(group):
        if perf_counter() > deadline:
            return True
        sleep(0.02)
    return False


def _group_runs(group: int) -> bool:
    """Whether a process of a group has not ended. One that has ended stays in the list until its parent asks for it."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, process_group = path.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        if int(process_group) == group and state not in "ZX":
            return True
    return False


def _read_and_close(file: IO[bytes]) -> str:
    with file:
        file.seek(0)
        return file.read().decode(errors="replace")
