"""How fast a network is on this machine: fused kernels and the plain version, taking turns in one process."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F

from tigranet.model import TIGraNet
from tigranet.ops import using

IN_A_ROW = 10
"""Calls with one image in a turn, as when images come one after the other."""


@dataclass(frozen=True)
class Speed:
    """Medians of milliseconds."""

    work: str
    fused: float
    plain: float
    images: int = 1

    @property
    def times(self) -> float:
        """How many times faster the fused kernels are."""
        return self.plain / self.fused


def measure_speed(
    net: TIGraNet, size: int, batch: int = 100, rounds: int = 9, step: Callable[[], None] = lambda: None
) -> list[Speed]:
    """A copy of ``net``, where it is, on square images of ``size``: one image, a batch, a training step of a batch.

    ``step`` is called after each of three pieces of work. The weights of ``net`` are left as they are.
    """
    device = next(net.parameters()).device
    copy = TIGraNet(**net.config).to(device)
    copy.load_state_dict(net.state_dict())
    images = torch.rand(batch, net.in_maps, size, size, device=device)
    labels = torch.arange(batch, device=device) % net.num_classes
    optimizer = torch.optim.Adam(copy.parameters())

    def answer(count: int) -> None:
        copy.eval()
        with torch.inference_mode():
            copy(images[:count])

    def train() -> None:
        copy.train()
        optimizer.zero_grad()
        F.cross_entropy(copy(images), labels).backward()
        optimizer.step()

    works: dict[str, tuple[int, Callable[[], None]]] = {
        "one image": (1, partial(answer, 1)),
        f"{batch} images": (batch, partial(answer, batch)),
        f"training step of {batch}": (batch, train),
    }
    found = []
    for work, (count, call) in works.items():
        found.append(Speed(work, *_in_turns(call, rounds, IN_A_ROW if count == 1 else 1, device), count))
        step()
    return found


def _in_turns(call: Callable[[], None], rounds: int, in_a_row: int, device: torch.device) -> tuple[float, float]:
    """Milliseconds, fused and plain."""

    def once() -> float:
        start = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return 1e3 * (time.perf_counter() - start)

    fused, plain = [], []
    for _ in range(rounds + 1):
        with using("fused"):
            fused += [once() for _ in range(in_a_row)]
        with using("plain"):
            plain += [once() for _ in range(in_a_row)]
    return median(fused[in_a_row:]), median(plain[in_a_row:])  # the first calls compile and warm up
