"""Duration of a training on a CPU, estimated from a few steps."""

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import torch
import torch.nn.functional as F
from torch import nn

from tigranet.freed_memory import keep_freed_memory

CPU_THREADS = 2
"""Number of threads of the estimate: the cores of a small machine."""
WARM_UP_STEPS, MEASURED_STEPS = 1, 3
"""Number of steps before the measurement, in which kernels are compiled, and number of measured steps."""


def cpu_step_seconds(
    module: nn.Module, image_shape: tuple[int, int, int], num_classes: int, batch_size: int, threads: int = CPU_THREADS
) -> float:
    """Measure how long one training step takes on the CPU, without augmentation.

    A copy of the network is measured, so the weights do not change.

    Args:
        module: The network, on any device.
        image_shape: Channels, height and width of the images.
        num_classes: Number of classes.
        batch_size: Batch size.
        threads: Number of threads.

    Returns:
        The median duration of a step in seconds.
    """
    network = copy.deepcopy(module).cpu().train()
    optimizer = torch.optim.Adam(network.parameters())
    images, labels = torch.rand(batch_size, *image_shape), torch.arange(batch_size) % num_classes
    durations = []
    with _threads(threads), keep_freed_memory():
        for _ in range(WARM_UP_STEPS + MEASURED_STEPS):
            start = time.perf_counter()
            optimizer.zero_grad()
            F.cross_entropy(network(images), labels).backward()
            optimizer.step()
            durations.append(time.perf_counter() - start)
    return median(durations[WARM_UP_STEPS:])


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Use this many threads within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
