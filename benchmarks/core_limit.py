"""The limit of the cores: how fast processes decode and compute if they do nothing else.

Each process decodes a batch of images, computes it, and begins again: no queue, no thread, no output. A pipeline on the
same cores cannot be faster. The processes are started once and measured several times, so that the limit and a pipeline
can be measured by turns.
"""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import torch

from tigranet import TIGraNet
from tigranet.data.letterbox import read_letterboxed
from tigranet.evaluation.batched_inference import inference
from tigranet.workflows.bulk_prediction.source import find_parts

START_SECONDS = 120


class CoreRate(NamedTuple):
    """What processes did together."""

    images_per_second: float
    decode_seconds: float
    """Processor time to read and decode an image."""
    compute_seconds: float
    """Processor time of the network for an image."""


class CoreLimit:
    """Processes that decode and compute.

    Args:
        connections: One for each process.
    """

    def __init__(self, connections: list[Connection]) -> None:
        self.connections = connections

    def measure(self, batch_size: int, seconds: float) -> CoreRate:
        """Let all processes work at the same time.

        Args:
            batch_size: Number of images that are computed at once.
            seconds: Duration of the measurement.

        Returns:
            The rate of all processes together, and the mean processor times.
        """
        for connection in self.connections:
            connection.send((batch_size, seconds))
        measured = [connection.recv() for connection in self.connections]
        images = sum(count for count, *_ in measured)
        return CoreRate(
            sum(count / wall for count, wall, *_ in measured),
            sum(decode for *_, decode, _ in measured) / images,
            sum(compute for *_, compute in measured) / images,
        )


@contextmanager
def core_limit(model: str, source: Path, processes: int) -> Iterator[CoreLimit]:
    """Start processes that decode and compute with one thread each.

    Args:
        model: Name or folder of the network.
        source: Folder of Parquet files with images.
        processes: Number of processes.

    Yields:
        What measures them.
    """
    context = multiprocessing.get_context("spawn")
    connections, started = [], []
    for _ in range(processes):
        connection, other = context.Pipe()
        started.append(context.Process(target=_work, args=(other, model, str(source)), daemon=True))
        started[-1].start()
        connections.append(connection)
    for connection in connections:
        if not connection.poll(START_SECONDS):
            raise RuntimeError(f"a process did not start within {START_SECONDS} s")
        connection.recv()
    try:
        yield CoreLimit(connections)
    finally:
        for process in started:
            process.terminate()
            process.join()


def _work(connection: Connection, model: str, source: str) -> None:
    torch.set_num_threads(1)
    network = TIGraNet.from_pretrained(model)
    assert network.image_size is not None
    part = next(iter(find_parts([source], 1000)))
    images = cycle([image for _, image in part.read()])

    def measure(batch_size: int, seconds: float) -> tuple[int, float, float, float]:
        count, decode, compute, start = 0, 0.0, 0.0, perf_counter()
        while perf_counter() - start < seconds:
            begun = process_time()
            read = read_letterboxed(islice(images, batch_size), network.image_size, network.in_maps > 1, workers=0)
            batch = torch.stack([image for _, image in read])
            decoded = process_time()
            network(batch).softmax(1).max(1)
            count, decode, compute = count + batch_size, decode + decoded - begun, compute + process_time() - decoded
        return count, perf_counter() - start, decode, compute

    with inference(network):
        measure(64, 0.5)  # loads the kernels
        connection.send("ready")
        while True:
            connection.send(measure(*connection.recv()))
