"""Speed of a network on this machine: fused kernels against plain PyTorch, alternating in one process."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F

from tigranet.model import TIGraNet
from tigranet.ops import using

SINGLE_IMAGE_CALLS = 10
"""Number of consecutive calls with one image in each round, as when images arrive one after the other."""


@dataclass(frozen=True)
class Speed:
    """Median times of one task, in milliseconds."""

    work: str
    """Name of the task."""
    fused: float
    """Time with fused kernels."""
    plain: float
    """Time with plain PyTorch."""
    images: int = 1
    """Number of images that the task processes."""

    @property
    def times(self) -> float:
        """Speed-up of the fused kernels over plain PyTorch."""
        return self.plain / self.fused


def measure_speed(
    net: TIGraNet, size: int, batch: int = 100, rounds: int = 9, step: Callable[[], None] = lambda: None
) -> list[Speed]:
    """Measure how long a network takes for one image, for a batch, and for a training step of a batch.

    A copy of the network is measured on the same device, so the weights do not change.

    Args:
        net: The network.
        size: Height and width of the images.
        batch: Batch size.
        rounds: Number of measurements of each task, after one round of warm-up.
        step: Called after each of the three tasks.

    Returns:
        The times of the three tasks.
    """
    device = next(net.parameters()).device
    copy = TIGraNet(**net.config).to(device)
    copy.load_state_dict(net.state_dict())
    images = torch.rand(batch, net.in_maps, size, size, device=device)
    labels = torch.arange(batch, device=device) % net.num_classes
    optimizer = torch.optim.Adam(copy.parameters())

    def infer(count: int) -> None:
        copy.eval()
        with torch.inference_mode():
            copy(images[:count])

    def train() -> None:
        copy.train()
        optimizer.zero_grad()
        F.cross_entropy(copy(images), labels).backward()
        optimizer.step()

    tasks: dict[str, tuple[int, Callable[[], None]]] = {
        "one image": (1, partial(infer, 1)),
        f"{batch} images": (batch, partial(infer, batch)),
        f"training step of {batch}": (batch, train),
    }
    results = []
    for name, (count, task) in tasks.items():
        times = _alternating_times(task, rounds, SINGLE_IMAGE_CALLS if count == 1 else 1, device)
        results.append(Speed(name, *times, count))
        step()
    return results


def _alternating_times(task: Callable[[], None], rounds: int, calls: int, device: torch.device) -> tuple[float, float]:
    """Return the median milliseconds of a call, fused and plain. The first round, which compiles, is not counted."""

    def time_once() -> float:
        start = time.perf_counter()
        task()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return 1e3 * (time.perf_counter() - start)

    fused, plain = [], []
    for _ in range(rounds + 1):
        with using("fused"):
            fused += [time_once() for _ in range(calls)]
        with using("plain"):
            plain += [time_once() for _ in range(calls)]
    return median(fused[calls:]), median(plain[calls:])
