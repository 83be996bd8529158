"""Dynamic pooling as one operator: the J-th value of a map by bisection, not by sorting."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tigranet.ops.custom_op import operator
from tigranet.ops.dispatch import choose, misfit
from tigranet.ops.thread_pool import share

STEPS = 20
"""Times that a map is read, about: most bisections end before all bits are found."""


def fused_pooling(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates the plain ``forward(layer, z, omega)`` of a layer with ``num_active``, ``ties`` and ``tolerance``."""
    return choose(plain, _fused)


def _fused(layer: Any, z: Tensor, omega: Tensor | None = None) -> Tensor | str:
    if (why := misfit(z, omega)) is not None:
        return why
    if omega is not None and (omega.shape != (z.shape[0], 1, z.shape[2]) or omega.dtype != torch.bool):
        return f"for nodes of interest {omega.dtype} {tuple(omega.shape)}"
    if not z.shape[2]:
        return "for maps of no nodes"
    return pooling(z.detach(), omega, layer.num_active, layer.ties == "strict", layer.tolerance)


@operator("pooling")
def pooling(z: Tensor, omega: Tensor | None, num_active: int, strict: bool, tolerance: float) -> Tensor:
    from tigranet.ops import cpu

    batch, maps, nodes = z.shape
    values = z.contiguous().numpy().reshape(batch * maps, nodes)
    bits = values.view(f"int{8 * values.itemsize}")
    masked, mask = False, np.empty((1, 0), np.uint8)
    if omega is not None:
        masked, mask = True, omega.contiguous().view(torch.uint8).numpy().reshape(batch, nodes)
    active = torch.empty(z.shape, dtype=torch.bool)
    out, within = active.view(torch.uint8).numpy().reshape(batch * maps, nodes), values.dtype.type(tolerance)
    share(
        lambda first, last: cpu.pooling(values, mask, masked, maps, num_active, strict, within, bits, first, last, out),
        batch * maps,
        z.numel() * STEPS,
    )
    return active


@pooling.register_fake
def _(z: Tensor, *_: Any) -> Tensor:
    return z.new_empty(z.shape, dtype=torch.bool)
