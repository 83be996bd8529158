"""Keep the memory that PyTorch frees within the process while a network computes on the CPU.

Each step of a training allocates and frees the same large arrays. By default, the C library of Linux (glibc) gives each
of them back to the system, which hands it out again page by page, filled with zeros: a thousand page faults for each
image of 64x64 pixels, and up to a third of the time. Memory that is kept is used again as it is.
"""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4
"""Parameters of glibc's ``mallopt``: how much free memory at the end of the heap is given back, from which size on an
array is mapped from the system separately, and how many arrays may be."""
KEEP = {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: 2**31 - 1}
"""Map no array separately, and give back no memory."""
RESTORE = {M_MMAP_MAX: 65_536, M_MMAP_THRESHOLD: 32 * 2**20, M_TRIM_THRESHOLD: 64 * 2**20}
"""glibc's defaults. It adapts its thresholds to the largest array that has been freed, up to these values, until the
first call of ``mallopt``."""
MAX_IDLE_BYTES = 256 * 2**20
"""Free memory that a process may keep after a block, so that calls that follow each other, batch by batch or image by
image, can use it."""
USER_VARIABLES = ("MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")
USER_TUNABLES = ("malloc.mmap_max", "malloc.mmap_threshold", "malloc.trim_threshold", "malloc.top_pad")
"""Environment variables, and parts of ``GLIBC_TUNABLES``, with which a user decides what memory is kept."""


class _MemoryStatistics(ctypes.Structure):
    """The result of glibc's ``mallinfo2``."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


_lock = threading.Lock()
_open_blocks = 0


@contextmanager
def keep_freed_memory(enabled: bool = True) -> Iterator[None]:
    """Keep freed memory for the next arrays within the block, and give it back to the system afterwards.

    Within the block the process holds at most the memory of its largest moment, plus gaps between arrays. After it, up
    to :data:`MAX_IDLE_BYTES` are not given back. Blocks may be nested, and may overlap in several threads: the last to
    end gives the memory back.

    The block changes nothing on systems without glibc, or if the user has decided what memory is kept, with one of
    :data:`USER_VARIABLES` or :data:`USER_TUNABLES`.

    Args:
        enabled: Whether to do so. False changes nothing, for work on other devices.

    Example:
        >>> import torch
        >>> network = torch.nn.Linear(28 * 28, 10)
        >>> with keep_freed_memory():
        ...     for images in torch.rand(20, 28 * 28).split(10):
        ...         network(images).sum().backward()
    """
    library = glibc() if enabled and not _chosen_by_user() else None
    if library is None:
        yield
        return
    _open(library)
    try:
        yield
    finally:
        _close(library)


def _open(library: ctypes.CDLL) -> None:
    global _open_blocks
    with _lock:
        _open_blocks += 1
        if _open_blocks == 1:
            _set_parameters(library, KEEP)


def _close(library: ctypes.CDLL) -> None:
    global _open_blocks
    with _lock:
        _open_blocks -= 1
        if _open_blocks == 0:
            _set_parameters(library, RESTORE)
            if _free_bytes(library) > MAX_IDLE_BYTES:
                library.malloc_trim(ctypes.c_size_t(0))


def _set_parameters(library: ctypes.CDLL, parameters: dict[int, int]) -> None:
    for parameter, value in parameters.items():
        library.mallopt(parameter, value)


def _free_bytes(library: ctypes.CDLL) -> int:
    """Return the memory that the process holds and does not use. glibc before 2.33 cannot tell: assume much."""
    if not hasattr(library, "mallinfo2"):
        return MAX_IDLE_BYTES + 1
    library.mallinfo2.restype = _MemoryStatistics
    return library.mallinfo2().fordblks


@cache
def glibc() -> ctypes.CDLL | None:
    """Return glibc, or None if the process does not use it."""
    try:
        is_glibc = bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (AttributeError, ValueError, OSError):  # Windows, macOS, musl
        return None
    return ctypes.CDLL(None) if is_glibc else None


def _chosen_by_user() -> bool:
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return any(name in os.environ for name in USER_VARIABLES) or any(name in tunables for name in USER_TUNABLES)
