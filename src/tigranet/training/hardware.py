"""Where a network is trained, as a value."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

import torch

from tigranet.choices import Accelerator, Precision

PLUGINS: dict[str, Any] = {"tf32": "32-true", "32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}


@dataclass(frozen=True)
class Hardware:
    """The best device there is, alone, unless more is asked for.

    With ``devices`` or ``nodes`` above 1, each device works on its part of every batch: the result is that of one
    device, but for rounding, unless the network normalises by what one device sees, as PyTorch's BatchNorm does.
    ``strategy`` is Lightning's: ``ddp`` starts the processes on this machine itself; on several, the command is started
    on each, with what torchrun or the queueing system tells it.
    """

    accelerator: Accelerator = "auto"
    devices: int = 1
    nodes: int = 1
    strategy: str = "auto"
    precision: Precision = "tf32"
    """Of matrix products, while it trains; the graph is always computed in full. ``tf32`` is single precision but for
    the factors' last 13 bits, where a GPU is made for it (twice as fast), and plain single precision elsewhere."""
    deterministic: bool = False
    """Only operations whose result is the same bits each time, where the device has others that are faster."""

    def __post_init__(self) -> None:
        for name, values in (("accelerator", get_args(Accelerator)), ("precision", get_args(Precision))):
            if getattr(self, name) not in values:
                raise ValueError(f"{name} is one of {', '.join(values)}, got {getattr(self, name)!r}")
        if self.devices < 1 or self.nodes < 1:
            raise ValueError(f"devices and nodes are at least 1, got {self.devices} and {self.nodes}")

    @contextmanager
    def matrix_products(self, device: torch.device) -> Iterator[None]:
        """Within, PyTorch multiplies matrices on ``device`` as ``precision`` says; after it, as before."""
        usual = torch.get_float32_matmul_precision()
        if self.precision == "tf32" and device.type == "cuda":
            torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(usual)

    def for_trainer(self) -> dict[str, Any]:
        """The arguments of Lightning's Trainer."""
        if self.accelerator == "gpu" and not torch.accelerator.is_available():
            raise ValueError("there is no GPU that PyTorch can use: leave the accelerator to 'auto', or take 'cpu'")
        return {
            "accelerator": self.accelerator,
            "devices": self.devices,
            "num_nodes": self.nodes,
            "strategy": self.strategy,
            "precision": PLUGINS[self.precision],
            "deterministic": self.deterministic,
        }
