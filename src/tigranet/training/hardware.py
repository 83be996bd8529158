"""The hardware that a network is trained on, and the precision of its matrix products."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, get_args

import torch
from torch import nn

from tigranet.choices import Accelerator, Precision
from tigranet.devices import trains_on_cuda
from tigranet.half_precision import computes_with
from tigranet.matrix_precision import matrix_precision

LIGHTNING_PRECISIONS: dict[str, Any] = {
    "auto": "32-true",
    "tf32": "32-true",
    "32": "32-true",
    "bf16": "bf16-mixed",
    "16": "16-mixed",
}
"""Lightning's name of each precision. ``auto`` is chosen for a network before Lightning is asked."""


@dataclass(frozen=True)
class Hardware:
    """Devices, processes and precision of a training. The default is one device, the fastest that is available.

    With ``devices`` or ``nodes`` above 1, every batch is divided among the devices: the batch size of the recipe is
    that of all devices together. The result is the same as with one device, up to rounding, unless the network draws
    random numbers itself, as dropout does. Batch normalisations use the moments of the whole batch.
    """

    accelerator: Accelerator = "auto"
    """The kind of device; ``auto`` takes a GPU if there is one."""
    devices: int = 1
    """Number of devices on each machine."""
    nodes: int = 1
    """Number of machines."""
    strategy: str = "auto"
    """Lightning's strategy. ``ddp`` starts the processes of one machine. On several machines, start the command on each
    of them with torchrun or with the queueing system."""
    precision: Precision = "auto"
    """Precision of matrix products during training; graph operations always use full precision. ``tf32`` is single
    precision with factors rounded to 10 bits of mantissa on GPUs that support it, where it is about twice as fast, and
    plain single precision on other devices. ``auto`` is ``bf16`` for networks with group convolutions on GPUs that
    compute with it, where it takes half of the time and memory of ``tf32``, and ``tf32`` for all others."""
    deterministic: bool = False
    """Whether to use only operations that give identical bits in every run, even where faster ones exist."""

    def __post_init__(self) -> None:
        for name, choices in (("accelerator", get_args(Accelerator)), ("precision", get_args(Precision))):
            if getattr(self, name) not in choices:
                raise ValueError(f"expected {name} to be one of {', '.join(choices)}, got {getattr(self, name)!r}")
        for name in ("devices", "nodes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def for_network(self, network: nn.Module) -> "Hardware":
        """Choose the precision for a network, if it is ``auto``.

        Args:
            network: The network to train. It has group convolutions if ``architecture.has_group_convolutions`` is true.

        Returns:
            The same hardware, with another precision than ``auto``.
        """
        if self.precision != "auto":
            return self
        has_group_convolutions = getattr(getattr(network, "architecture", None), "has_group_convolutions", False)
        on_gpu = trains_on_cuda(self.accelerator)
        half = has_group_convolutions and on_gpu and computes_with(torch.device("cuda"), torch.bfloat16)
        return replace(self, precision="bf16" if half else "tf32")

    @contextmanager
    def matrix_products(self, device: torch.device) -> Iterator[None]:
        """Set the precision of matrix products and convolutions on ``device`` within the block, then restore it.

        ``auto`` has to be replaced first, see :meth:`for_network`.

        Args:
            device: The device that trains.
        """
        if device.type == "cuda":
            with matrix_precision(tf32=self.precision == "tf32"):
                yield
        else:
            yield

    def for_trainer(self) -> dict[str, Any]:
        """Return the arguments for Lightning's ``Trainer``.

        Returns:
            Keyword arguments by name.

        Raises:
            ValueError: If a GPU is required and PyTorch finds none.
        """
        if self.accelerator == "gpu" and not torch.accelerator.is_available():
            raise ValueError("accelerator is 'gpu', but PyTorch finds no GPU: use 'auto' or 'cpu'")
        from tigranet.training.launcher import launcher_plugins  # imports Lightning, which takes seconds

        return {
            "accelerator": self.accelerator,
            "devices": self.devices,
            "num_nodes": self.nodes,
            "strategy": self.strategy,
            "precision": LIGHTNING_PRECISIONS[self.precision],
            "deterministic": self.deterministic,
            "plugins": launcher_plugins(),
        }
