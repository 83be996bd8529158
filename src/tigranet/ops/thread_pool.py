"""A batch shared out among threads: numba's kernels hold no lock while they run.

Python's threads rather than numba's own, because those kill the process when two threads use them at once, and when a
process that has used them forks (as a DataLoader's workers do). These are made anew in a process that was forked.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

SMALL = 200_000
"""Work (nodes times steps) that takes one thread no longer than waking another."""
BLOCKS = 4
"""Blocks a thread: enough that a thread that was interrupted keeps the others waiting for little."""

_pool: tuple[int, int, ThreadPoolExecutor] | None = None


def share(kernel: Callable[[int, int], None], items: int, work: int) -> None:
    """Call ``kernel(first, last)`` until all ``items`` are done, by as many threads as PyTorch uses."""
    threads = min(torch.get_num_threads(), items)
    if threads <= 1 or work <= SMALL:
        kernel(0, items)
        return
    block = -(-items // (BLOCKS * threads))
    starts = iter(range(0, items, block))

    def take() -> None:
        for first in starts:
            kernel(first, min(first + block, items))

    others = [_workers(threads - 1).submit(take) for _ in range(threads - 1)]
    try:
        take()
    finally:
        for other in others:
            other.result()


def _workers(count: int) -> ThreadPoolExecutor:
    global _pool
    if _pool is None or _pool[0] != os.getpid() or _pool[1] < count:
        _pool = (os.getpid(), count, ThreadPoolExecutor(count, "tigranet"))
    return _pool[2]
