"""Write shards in this process, or in several processes at once."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection

from tigranet.data.shards.shard_files import ShardIndex
from tigranet.data.shards.writer import ShardImage

WAITING_SHARDS = 2
"""Number of shards per worker that are handed out before one is finished."""


def run_workers(
    write: Callable[..., ShardIndex],
    pending: Iterator[tuple[int, list[ShardImage]]],
    workers: int,
    step: Callable[[], None],
) -> Iterator[ShardIndex]:
    """Write shards in this process, or in several others, which end when this one ends, however it ends.

    Args:
        write: Writes a shard, given its number and its images.
        pending: The shards to write. They are taken one after the other.
        workers: Number of processes. With 1 this process does the work.
        step: Called after each file, if this process does the work.

    Yields:
        The index of each shard, in the order in which they are finished.

    Raises:
        RuntimeError: If a worker process dies.
        OSError: If a shard cannot be written.
    """
    if workers <= 1:
        for number, images in pending:
            yield write(number, images, step=step)
        return
    context = multiprocessing.get_context("spawn")  # PyTorch's threads do not survive a fork.
    reader, writer = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(reader,))
    running: set[Future[ShardIndex]] = set()
    try:
        while True:
            for number, images in pending:
                with _without_interrupts():  # the first call starts the workers
                    running.add(pool.submit(write, number, images, threads=2))
                if len(running) >= workers * WAITING_SHARDS:
                    break
            if not running:
                break
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()
        pool.shutdown()
    except BrokenProcessPool:
        raise RuntimeError(
            "a worker process died, perhaps for lack of memory: the same command continues, with fewer --workers if "
            "it dies again"
        ) from None
    finally:
        writer.close()  # ends workers that still write
        pool.shutdown(cancel_futures=True)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block. Processes that are started in it never receive it, and print nothing."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _start_worker(reader: Connection) -> None:
    """Ignore Ctrl-C, which the process that started this one handles, and end when that one closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        try:
            reader.recv()
        except (EOFError, OSError):
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
