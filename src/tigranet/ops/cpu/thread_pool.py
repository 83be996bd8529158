"""Divide the items of a batch among threads. Compiled kernels do not hold Python's global lock.

These are Python's threads rather than numba's, because numba's terminate the process when two threads use them at
once, or when a process that has used them forks, as the workers of a DataLoader do. A forked process gets new threads.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

from tigranet.ops.cpu.contention import Contention

MAX_SINGLE_THREAD_WORK = 200_000
"""Amount of work (nodes times steps) that one thread finishes before a second one has started."""
BLOCKS_PER_THREAD = 4
"""Enough blocks that a thread that is interrupted delays the others little."""

_pool: tuple[int, int, ThreadPoolExecutor] | None = None
_contention = Contention()


def share(kernel: Callable[[int, int], None], items: int, work: int) -> None:
    """Call ``kernel(first, last)`` for ranges that cover all items, in as many threads as PyTorch uses.

    Beside another process that keeps a core busy, there is one thread fewer (:mod:`tigranet.ops.cpu.contention`).

    Args:
        kernel: A function that computes the items ``first`` to ``last``, ``last`` excluded.
        items: The number of items.
        work: The number of nodes times the number of steps, to decide whether several threads are worth it.
    """
    threads = min(torch.get_num_threads() - _contention.is_likely(), items)
    if threads <= 1 or work <= MAX_SINGLE_THREAD_WORK:
        kernel(0, items)
        return
    block = -(-items // (BLOCKS_PER_THREAD * threads))
    starts = iter(range(0, items, block))

    def run_blocks() -> None:
        for first in starts:
            kernel(first, min(first + block, items))

    futures = [_workers(threads - 1).submit(run_blocks) for _ in range(threads - 1)]
    try:
        _contention.observe(run_blocks)
    finally:
        for future in futures:
            future.result()


def _workers(count: int) -> ThreadPoolExecutor:
    """Return a pool of at least ``count`` threads that were started in this process."""
    global _pool
    if _pool is None or _pool[0] != os.getpid() or _pool[1] < count:
        _pool = (os.getpid(), count, ThreadPoolExecutor(count, "tigranet"))
    return _pool[2]
