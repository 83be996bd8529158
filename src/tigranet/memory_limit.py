"""Start a command only where the limits on the memory of the process leave enough for it.

``ulimit -v``, and the schedulers of many clusters, limit the address space of a process. Not every library in C checks
whether it got the memory that it asked for: one that goes on without it damages the process, whose next steps then
give wrong numbers, an unrelated traceback, or a crash. Memory that is needed in any case is therefore checked before
such libraries are loaded. What the images and the network need on top is allocated by NumPy and PyTorch in large
arrays, which fail with a clear error and leave room for the rest.

:data:`NEEDED_BYTES` has the largest address space of each command, measured with Linux's ``VmPeak`` for a few small
images, one thread and one arena (below), including the compilation of all kernels, plus 3 %. ``train`` also compares
with a linear classifier of scikit-learn, whose solver runs for ever where its library gets no memory. ``report``
and ``suggest`` train without this comparison. ``figures``, ``angles`` and ``reproduce`` may train and have the figure
of ``train``; that of ``bench`` is an estimate. The figures hold for PyTorch for CPUs; builds for GPUs need more.

Each further thread has a stack and buffers of its own, and the C library of Linux (glibc) reserves 64 MB, an arena, for
each thread that allocates memory. Arrow reserves 1 GB for itself. Where a limit is near, :func:`prepare_memory` lets
all threads share one arena, starts only as many threads as fit, and lets Arrow use the memory of glibc.
"""

import ctypes
import os
from collections.abc import Callable, Collection
from functools import wraps
from typing import ParamSpec, TypeVar

from tigranet.freed_memory import glibc
from tigranet.usable_cores import usable_cores

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
MB = 1_000_000
NEEDED_BYTES = {
    "train": 1580 * MB,
    "evaluate": 1060 * MB,
    "predict": 1120 * MB,
    "calibrate": 1060 * MB,
    "features": 1100 * MB,
    "suggest": 1460 * MB,
    "export": 1180 * MB,
    "serve": 1160 * MB,
    "report": 1460 * MB,
    "figures": 1580 * MB,
    "angles": 1580 * MB,
    "reproduce": 1580 * MB,
    "bench": 1700 * MB,
}
"""Address space that each command needs in any case, with one thread."""
OPTION_BYTES = {"parquet": 105 * MB}
"""What options of commands need in addition, for their libraries."""
MAPPED_FILES_BYTES = 640 * MB
"""Part of the address space that is libraries, which ``ulimit -d`` does not count."""
THREAD_BYTES = 100 * MB
"""Address space of each further thread that computes: its stacks, and the buffers of linear algebra libraries."""
UNLIMITED_THREAD_BYTES = 400 * MB
"""The same where nothing is limited, with arenas, and with threads that read images. It is never reached."""
M_ARENA_MAX = -8
"""Parameter of glibc's ``mallopt``: the largest number of arenas."""
THREAD_VARIABLE, ARROW_VARIABLE = "OMP_NUM_THREADS", "ARROW_DEFAULT_MEMORY_POOL"
ARENA_VARIABLE, ARENA_TUNABLE = "MALLOC_ARENA_MAX", "malloc.arena_max"
"""With these environment variables, and this part of ``GLIBC_TUNABLES``, a user decides."""


class TooLittleMemoryError(MemoryError):
    """The limits of the process leave less memory than a command needs."""


def within_memory(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return a command that calls :func:`prepare_memory` with its own name and options first.

    Args:
        command: A function whose name is a key of :data:`NEEDED_BYTES`. Options that are None are not in use.

    Returns:
        A function with the same signature.
    """

    @wraps(command)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        prepare_memory(command.__name__, [name for name, value in kwargs.items() if value is not None])
        return command(*args, **kwargs)

    return call


def prepare_memory(command: str, options: Collection[str] = ()) -> None:
    """Check that this process may use the memory that a command needs, and save address space where a limit is near.

    This has an effect before PyTorch and NumPy are loaded. It does nothing where no limit is set.

    Args:
        command: A key of :data:`NEEDED_BYTES`.
        options: The options in use. Those of :data:`OPTION_BYTES` count.

    Raises:
        TooLittleMemoryError: If a limit is too low.
    """
    needed = NEEDED_BYTES[command] + sum(OPTION_BYTES.get(option, 0) for option in options)
    limits = memory_limits()
    for option, counted in (("v", needed), ("d", needed - MAPPED_FILES_BYTES)):
        if option in limits and limits[option] < counted:
            kib = -(-counted // 1024)
            raise TooLittleMemoryError(
                f"'tigranet {command}' needs at least {counted / 1e9:.2f} GB of "
                f"{'address space' if option == 'v' else 'data'}, and this process may use "
                f"{limits[option] / 1e9:.2f} GB (ulimit -{option} {limits[option] // 1024}): raise the limit, "
                f"with 'ulimit -{option} {kib}' or more"
            )
    if "v" in limits:
        _save_address_space(limits["v"] - needed)


def memory_limits() -> dict[str, int]:
    """Return the limits on the memory of this process in bytes, by the option of ``ulimit`` that sets them.

    Returns:
        The limit of the address space (``"v"``) and of the data (``"d"``), as far as they are set.
    """
    try:
        import resource
    except ImportError:  # Windows
        return {}
    soft_limits = {"v": resource.getrlimit(resource.RLIMIT_AS)[0], "d": resource.getrlimit(resource.RLIMIT_DATA)[0]}
    return {option: limit for option, limit in soft_limits.items() if limit != resource.RLIM_INFINITY}


def describe_shortage(error: Exception) -> str | None:
    """Return what to tell a user about an error if it means that there is too little memory.

    Args:
        error: The error of a library.

    Returns:
        A line with the remedy, or None if the error has another cause or gives its own remedy.

    Example:
        >>> describe_shortage(RuntimeError("can't start new thread"))
        "this needs more memory than there is (can't start new thread): use smaller images or a smaller batch size"
        >>> describe_shortage(RuntimeError("shape mismatch")) is None
        True
    """
    if isinstance(error, TooLittleMemoryError):
        return None
    is_memory_error = isinstance(error, MemoryError) and str(error) in ("", "std::bad_alloc")
    if not is_memory_error and not any(sign in str(error) for sign in SIGNS_OF_SHORTAGE):
        return None
    reason = f" ({error})" if str(error) else ""
    limits = [f"ulimit -{option} is {limit // 1024}" for option, limit in memory_limits().items()]
    remedy = f"raise the limit ({', '.join(limits)}), or " if limits else ""
    return f"this needs more memory than there is{reason}: {remedy}use smaller images or a smaller batch size"


SIGNS_OF_SHORTAGE = (
    "can't allocate memory",  # PyTorch
    "Unable to allocate",  # NumPy
    "can't start new thread",  # Python
    "Cannot allocate memory",  # the C library
    "failed to map segment from shared object",  # the loader of libraries
)
"""Parts of the messages of libraries that got no memory."""


def _save_address_space(spare_bytes: int) -> None:
    """Reserve less address space where ``spare_bytes`` are few, unless the user decides: see the top of this file."""
    cores = usable_cores()
    if spare_bytes >= cores * UNLIMITED_THREAD_BYTES:
        return
    library = glibc()
    is_chosen = ARENA_VARIABLE in os.environ or ARENA_TUNABLE in os.environ.get("GLIBC_TUNABLES", "")
    if library is not None and not is_chosen:
        library.mallopt(ctypes.c_int(M_ARENA_MAX), ctypes.c_int(1))
    os.environ.setdefault(THREAD_VARIABLE, str(max(1, min(cores, 1 + spare_bytes // THREAD_BYTES))))
    os.environ.setdefault(ARROW_VARIABLE, "system")
