"""The batches of an epoch, such that a training continues in the middle of an epoch."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor


class BatchIndices:
    """The indices of the batches of an epoch, from 0 on.

    Lightning stores the state in each checkpoint. A training that continues in the middle of an epoch begins with the
    batch after the last one of the checkpoint.

    Args:
        count: Number of batches, at least 1.

    Example:
        >>> batches = BatchIndices(3)
        >>> iterator = iter(batches)
        >>> next(iterator), next(iterator), batches.state_dict()
        (0, 1, {'next': 2})
        >>> continued = BatchIndices(3)
        >>> continued.load_state_dict({"next": 2})
        >>> list(continued), list(continued)
        ([2], [0, 1, 2])
    """

    def __init__(self, count: int) -> None:
        self.count, self.next = count, 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        for index in range(self.next % self.count, self.count):
            self.next = index + 1
            yield index

    @property
    def is_inside(self) -> bool:
        """Whether an epoch has begun and not ended."""
        return 0 < self.next < self.count

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint: the next batch."""
        return {"next": self.next % self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint.

        Args:
            state: The value of :meth:`state_dict`.
        """
        self.next = int(state["next"])


def random_state(device: torch.device) -> dict[str, Tensor]:
    """Return the states of the random generators of the CPU and of a device.

    Args:
        device: The device that computes.

    Returns:
        The states by name.
    """
    states = {"cpu": torch.default_generator.get_state()}
    if device.type == "cuda":
        states["device"] = torch.cuda.get_rng_state(device)
    return states


def set_random_state(states: dict[str, Tensor], device: torch.device) -> None:
    """Restore the states of the random generators.

    Args:
        states: The value of :func:`random_state`. On another kind of device, only the generator of the CPU is restored.
        device: The device that computes.
    """
    torch.default_generator.set_state(states["cpu"].cpu())
    if device.type == "cuda" and "device" in states:
        torch.cuda.set_rng_state(states["device"].cpu(), device)
