"""Let PyTorch's idle threads sleep, so that they do not take processor cores from threads that have work.

PyTorch divides its operations among the threads of OpenMP. By default, a thread of GNU's OpenMP that waits for the next
operation, or for the others at the end of one, spins for some milliseconds before it sleeps. Meanwhile it occupies a
core that the threads of our own kernels or another process could use: with one busy process beside it on two cores, a
training takes several times as long. Threads that sleep at once cost some microseconds for each operation.

:func:`let_idle_threads_sleep` is called when the package is imported. It changes nothing if the user has chosen how
threads wait, with one of :data:`WAITING_VARIABLES`.
"""

import os
import sys
import threading
from pathlib import Path

WAITING_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Environment variables with which a user decides how the threads of OpenMP wait."""
MAX_RESERVE_THREADS = 64
"""Largest number of threads to start in a process that has loaded PyTorch before this package."""
_ELEMENTS_PER_THREAD = 32_768
"""PyTorch gives each thread at least this many elements."""
_MAX_START_SECONDS = 10.0

_reserve: list[threading.Thread] = []


def let_idle_threads_sleep() -> None:
    """Let the idle threads of OpenMP sleep instead of spin, unless the user has chosen how they wait.

    OpenMP reads its environment variables once, when PyTorch loads it. Before that, ``OMP_WAIT_POLICY=passive`` is set
    for this process and the processes that it starts. After that, GNU's OpenMP is made to spin a thousandth of the time
    by :func:`reserve_threads`; other implementations stay as they are.
    """
    if any(name in os.environ for name in WAITING_VARIABLES):
        return
    if "torch" not in sys.modules:
        os.environ["OMP_WAIT_POLICY"] = "passive"
    elif not _reserve and _uses_gnu_openmp():
        reserve_threads()


def reserve_threads() -> None:
    """Start so many threads that GNU's OpenMP has more threads than cores, which makes all of them spin only briefly.

    GNU's OpenMP keeps a team of n threads for each thread that calls it, where n is PyTorch's number of threads: the
    caller and n - 1 more. With ``k`` callers that are asleep and c cores, 1 + k (n - 1) ≥ c threads exist besides
    those of the caller that computes. It is above the number of cores as soon as that one computes with two threads.
    The threads that are started here sleep until the process ends.

    Nothing is started if PyTorch uses one thread, or if it would take more than :data:`MAX_RESERVE_THREADS` threads.
    """
    import torch

    team = torch.get_num_threads()
    cores = len(os.sched_getaffinity(0))
    callers = -(-(cores - 1) // (team - 1)) if team > 1 else 0
    if callers * team > MAX_RESERVE_THREADS:
        return
    values = torch.empty(team * _ELEMENTS_PER_THREAD, dtype=torch.int8)

    def start_team_and_sleep(started: threading.Event) -> None:
        values.fill_(0)
        started.set()
        threading.Event().wait()

    for _ in range(callers):
        started = threading.Event()
        caller = threading.Thread(target=start_team_and_sleep, args=(started,), name="tigranet-reserve", daemon=True)
        caller.start()
        _reserve.append(caller)
        started.wait(_MAX_START_SECONDS)


def _uses_gnu_openmp() -> bool:
    try:
        return "libgomp" in Path("/proc/self/maps").read_text()
    except OSError:  # Only Linux has this file.
        return False
