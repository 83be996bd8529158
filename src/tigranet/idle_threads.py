"""Let PyTorch's idle threads sleep, so that they do not take processor cores from threads that have work.

PyTorch divides its operations among the threads of OpenMP. By default, a thread of GNU's OpenMP that waits for the next
operation, or for the others at the end of one, spins for some milliseconds before it sleeps. Meanwhile it occupies a
core that the threads of our own kernels or another process could use: with one busy process beside it on two cores, a
training takes several times as long. Threads that sleep at once cost some microseconds for each operation.
"""

import os
import sys

WAITING_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Environment variables with which a user decides how the threads of OpenMP wait."""


def let_idle_threads_sleep() -> None:
    """Set ``OMP_WAIT_POLICY=passive`` for this process and the processes that it starts.

    This is called when the package is imported. OpenMP reads the variable once, when PyTorch is loaded, so nothing is
    changed in a process that has loaded PyTorch before. The same holds if the user has set one of
    :data:`WAITING_VARIABLES`.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in WAITING_VARIABLES):
        os.environ["OMP_WAIT_POLICY"] = "passive"
