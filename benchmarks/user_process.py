"""Processes that measure as a user starts Python: without settings for threads or memory."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.pinned_workers import THREAD_VARIABLES
from tigranet.freed_memory import USER_VARIABLES
from tigranet.idle_threads import WAITING_VARIABLES

HERE = Path(__file__).parent.parent
USER_SETTINGS = {*WAITING_VARIABLES, *USER_VARIABLES, *THREAD_VARIABLES, "GLIBC_TUNABLES"}
"""Environment variables that a user may have set, and that importing tigranet may have set in this process."""


def run_without_settings(arguments: Sequence[str], checkout: Path = HERE) -> Any:
    """Run Python in a new process without :data:`USER_SETTINGS`.

    Args:
        arguments: Arguments of Python, such as ``["-m", "benchmarks.some_worker"]``.
        checkout: The folder of the repository whose package is imported.

    Returns:
        The JSON value in the last line of the process's output. What it writes to its standard error is shown if it
        fails.

    Raises:
        subprocess.CalledProcessError: If the process fails.
    """
    environment = {name: value for name, value in os.environ.items() if name not in USER_SETTINGS}
    search_path = [str(checkout / "src"), str(checkout), *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(search_path)
    # -P: this folder has a statistics.py, which would hide Python's own
    process = subprocess.run([sys.executable, "-P", *arguments], env=environment, capture_output=True, text=True)
    if process.returncode:
        print(process.stderr, file=sys.stderr)
        process.check_returncode()
    return json.loads(process.stdout.splitlines()[-1])
