"""Let PyTorch's idle threads sleep, so that they do not take processor cores from threads that have work.

PyTorch divides its operations among the threads of OpenMP. By default, a thread of GNU's OpenMP that waits for the next
operation, or for the others at the end of one, spins for some milliseconds before it sleeps. Meanwhile it occupies a
core that the threads of our own kernels or another process could use: with one busy process beside it on two cores, a
training takes several times as long. Threads that sleep at once cost some microseconds for each operation.

An environment variable decides how the threads wait, and OpenMP reads it once, when PyTorch is loaded. Where PyTorch is
loaded before this package, two other ways remain:

* GNU's OpenMP hardly spins while it manages more threads than there are cores. So a few more threads are started, which
  sleep until the process ends.
* The OpenMP of LLVM and Intel has a function for it.
"""

import ctypes
import os
import sys
import threading
from typing import Any

WAITING_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Environment variables with which a user decides how the threads of OpenMP wait."""
MAX_CORES = 128
"""On machines with more cores, no sleeping threads are started: threads that have work find a free core."""


def let_idle_threads_sleep() -> None:
    """Let the threads of OpenMP sleep while they wait, in this process and the processes that it starts.

    This is called when the package is imported. It sets ``OMP_WAIT_POLICY=passive`` if PyTorch is not loaded yet.
    Otherwise it makes the OpenMP library that PyTorch has loaded spin less, and leaves the environment unchanged.
    Nothing is changed if the user has set one of :data:`WAITING_VARIABLES`.
    """
    if any(name in os.environ for name in WAITING_VARIABLES):
        return
    if "torch" not in sys.modules:
        os.environ["OMP_WAIT_POLICY"] = "passive"
        return
    from threadpoolctl import threadpool_info

    for library in threadpool_info():
        if library["user_api"] == "openmp":
            _spin_less(library["prefix"], ctypes.CDLL(library["filepath"]))


def _spin_less(name: str, openmp: Any) -> None:
    """Let the threads of a loaded OpenMP library sleep soon after they have finished their work."""
    if name == "libgomp" and sys.platform == "linux":
        threads = openmp.omp_get_num_procs() + 1
        if threads <= MAX_CORES + 1:
            started = threading.Event()
            threading.Thread(target=_sleep_forever, args=(openmp, threads, started), daemon=True).start()
            started.wait()
    elif hasattr(openmp, "kmp_set_blocktime"):
        openmp.kmp_set_blocktime(ctypes.c_int(0))


def _sleep_forever(openmp: Any, threads: int, started: threading.Event) -> None:
    """Start threads of GNU's OpenMP, let them finish at once, and keep them by keeping the thread that started them."""
    free = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)  # free(NULL) does nothing
    openmp.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    openmp.GOMP_parallel.restype = None
    openmp.GOMP_parallel(free, None, threads, 0)
    started.set()
    threading.Event().wait()
