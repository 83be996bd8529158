"""Moments at which a signal is sent: after a time, or when a file is being written."""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep, time

from torture.process import Process

POLL_SECONDS = 0.0005
"""Interval between two looks at the files."""
CLOCK_RESOLUTION = 0.01
"""Seconds by which the modification time of a file may be behind the clock."""


@dataclass(frozen=True)
class AfterSeconds:
    """A time after the start of the command."""

    seconds: float

    def wait(self, process: Process, folder: Path) -> None:
        """Wait for the moment, or for the end of the process.

        Args:
            process: The process that runs.
            folder: Its working folder.
        """
        end = process.start + self.seconds
        while process.is_running and (remaining := end - perf_counter()) > 0:
            sleep(min(remaining, 0.01))


@dataclass(frozen=True)
class WhenFileAppears:
    """A time after a file that matches a pattern appears or is replaced."""

    pattern: str
    """Pattern of :meth:`pathlib.Path.glob`, relative to the working folder."""
    delay: float
    """Seconds."""

    def wait(self, process: Process, folder: Path) -> None:
        """Wait for the moment, or for the end of the process.

        Args:
            process: The process that runs.
            folder: Its working folder.
        """
        started = time() - (perf_counter() - process.start)
        while process.is_running and not any(_is_new(path, started) for path in folder.glob(self.pattern)):
            sleep(POLL_SECONDS)
        sleep(self.delay)


Moment = AfterSeconds | WhenFileAppears


def _is_new(path: Path, started: float) -> bool:
    try:
        return path.stat().st_mtime >= started - CLOCK_RESOLUTION
    except OSError:  # a temporary file that is already gone was there a moment ago
        return True
