"""Divide the images of a batch among threads, each of which computes on one core of the CPU.

PyTorch and our kernels divide every single operation among all cores, which wait for each other after each of them. In
a network of small images there are dozens of operations, and waiting takes a fifth of the time. Threads that each
process some images need not wait, and what an operation writes is still in the cache of the core that reads it.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context

import torch
from torch import Tensor

MIN_PART = 4
"""Smallest number of images of a part. Fewer images are divided operation by operation."""
PARTS_PER_THREAD = 16
"""Number of parts of a large batch for each thread. With small parts, a thread that is interrupted delays the others
little, and what one operation writes is still in the cache when the next one reads it."""
MAX_THREADS = 8
"""Largest number of threads. More of them would wait for Python's global lock; operations then use several cores."""

_lock = threading.Lock()
_blocks = 0
_threads_of_operations = 1
_pool: tuple[int, int, ThreadPoolExecutor] | None = None


def apply_in_threads(function: Callable[[Tensor], Tensor], batches: Iterable[Tensor]) -> Iterator[Tensor]:
    """Apply a function to the images of each batch, in as many threads as PyTorch uses.

    While the threads compute, the next batch is read, and its images wait for the first thread that is free: no core
    waits for another one at the end of a batch. Until the last result, PyTorch uses one thread for each operation, in
    the whole process. A batch that is too small for it, and a batch that is not on the CPU, is passed to the function
    as it is.

    Args:
        function: A function of images whose result for one image does not depend on the others.
        batches: Batches of images. At most two of them are held at a time.

    Yields:
        The result of the function for all images of a batch.

    Shape:
        A batch is (batch, ...), and so is its result.

    Example:
        >>> batches = torch.tensor([-1.0, 2.0]), torch.tensor([-3.0])
        >>> [result.tolist() for result in apply_in_threads(torch.abs, batches)]
        [[1.0, 2.0], [3.0]]
    """
    threads = torch.get_num_threads()
    inference = torch.is_inference_mode_enabled()

    def compute(part: Tensor) -> Tensor:
        with torch.inference_mode(inference):  # a property of each thread
            return function(part)

    started: deque[_StartedBatch] = deque()
    try:
        for batch in batches:
            parts = _split(batch, threads) if 1 < threads <= MAX_THREADS else [batch]
            if len(parts) == 1 or batch.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
                while started:
                    yield started.popleft().result()
                yield function(batch)
                continue
            started.append(_StartedBatch(compute, parts, len(batch), threads))
            if len(started) > 1:
                yield started.popleft().result()
        while started:
            yield started.popleft().result()
    finally:
        for unfinished in started:
            unfinished.cancel()


class _StartedBatch:
    """A batch whose parts are computed by threads. PyTorch uses one thread for each operation until it has ended."""

    def __init__(self, compute: Callable[[Tensor], Tensor], parts: list[Tensor], images: int, threads: int) -> None:
        self.images = images
        self._block = _one_thread_per_operation()
        self._block.__enter__()
        self._futures: list[Future[Tensor]] = []
        try:
            for part in parts:
                self._futures.append(_workers(threads).submit(copy_context().run, compute, part))
        except BaseException:
            self.cancel()
            raise

    def result(self) -> Tensor:
        """Wait for all parts, and return the result of all images."""
        try:
            *results, last = [future.result() for future in self._futures]
        finally:
            self.cancel()
        return torch.cat([*results, last[len(results) * len(last) - self.images :]])

    def cancel(self) -> None:
        """Compute no part that has not been started, and wait for the others."""
        for future in self._futures:
            future.cancel()
        wait(self._futures)
        self._block.__exit__(None, None, None)


def _split(batch: Tensor, threads: int) -> list[Tensor]:
    """Return the images in parts, about the same number of parts for each thread.

    All parts have the same number of images, because the last bits of a matrix product may depend on it, and images
    that are equal should have equal results. The last part therefore repeats some images of the one before it.
    """
    parts = threads * min(PARTS_PER_THREAD, len(batch) // (MIN_PART * threads))
    if parts < 2:
        return [batch]
    size = -(-len(batch) // parts)
    starts = range(0, len(batch), size)
    return [batch[min(start, len(batch) - size) :][:size] for start in starts]


@contextmanager
def _one_thread_per_operation() -> Iterator[None]:
    """Let PyTorch use one thread for each operation until the last of several overlapping blocks has ended."""
    global _blocks, _threads_of_operations
    with _lock:
        _blocks += 1
        if _blocks == 1:
            _threads_of_operations = torch.get_num_threads()
            torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if _blocks == 0:
                torch.set_num_threads(_threads_of_operations)


def _workers(count: int) -> ThreadPoolExecutor:
    """Return a pool of at least ``count`` threads that were started in this process."""
    global _pool
    with _lock:
        if _pool is None or _pool[0] != os.getpid() or _pool[1] < count:
            _pool = (os.getpid(), count, ThreadPoolExecutor(count, "tigranet-images"))
        return _pool[2]
