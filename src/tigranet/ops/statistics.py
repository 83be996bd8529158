"""Chebyshev statistics as one operator: 2 (order + 1) numbers a map, and nothing saved but the input."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tigranet.ops.custom_op import operator
from tigranet.ops.dispatch import choose, misfit
from tigranet.ops.grid_spec import describe, flat, grid_of
from tigranet.ops.thread_pool import share

_plain: Callable[..., Tensor]


def fused_statistics(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates the plain ``forward(layer, z, laplacian, active)`` of a layer with an ``order`` and a ``ROUNDING``."""
    global _plain
    _plain = plain
    return choose(plain, _fused)


def _fused(layer: Any, z: Tensor, laplacian: Any, active: Tensor | None = None) -> Tensor | str:
    if (why := misfit(z, active, laplacian=laplacian)) is not None:
        return why
    if active is not None and (active.shape != z.shape or active.dtype != torch.bool):
        return f"for active nodes {active.dtype} {tuple(active.shape)} of maps {tuple(z.shape)}"
    return statistics(z, active, layer.order, layer.ROUNDING, *describe(laplacian))


@operator("statistics")
def statistics(
    z: Tensor,
    active: Tensor | None,
    order: int,
    rounding: int,
    height: int,
    width: int,
    neighbours: int,
    torus: bool,
    diagonal: float,
) -> Tensor:
    from tigranet.ops import cpu

    batch, maps = z.shape[:2]
    s, measures, weight = flat((height, width, neighbours, torus, diagonal), z.dtype)
    phi = z.new_empty(batch, maps * 2 * (order + 1))
    signals, mask, masked = _items(z, active)
    out = phi.numpy().reshape(batch * maps, order + 1, 2)
    share(
        lambda first, last: cpu.statistics(signals, mask, masked, s, measures, weight, order, first, last, out),
        batch * maps,
        z.numel() * (order + 1),
    )
    return phi


@operator("statistics_backward")
def statistics_backward(
    g: Tensor,
    phi: Tensor,
    z: Tensor,
    active: Tensor | None,
    order: int,
    rounding: int,
    height: int,
    width: int,
    neighbours: int,
    torus: bool,
    diagonal: float,
) -> Tensor:
    from tigranet.ops import cpu

    batch, maps, nodes = z.shape
    s, measures, weight = flat((height, width, neighbours, torus, diagonal), z.dtype)
    signals, mask, masked = _items(z, active)
    g_z = torch.empty_like(z, memory_format=torch.contiguous_format)
    shape = (batch * maps, order + 1, 2)
    noise = s.dtype.type(rounding * torch.finfo(z.dtype).eps)
    bits = np.empty(0, f"int{8 * s.itemsize}")
    values, upstream = _array(phi).reshape(shape), _array(g).reshape(shape)
    out = g_z.numpy().reshape(batch * maps, nodes)
    share(
        lambda first, last: cpu.statistics_backward(
            signals, mask, masked, s, measures, weight, order, noise, values, upstream, bits, first, last, out
        ),
        batch * maps,
        2 * z.numel() * (order + 1),
    )
    return g_z


@statistics.register_fake
def _(z: Tensor, active: Tensor | None, order: int, *_: Any) -> Tensor:
    return z.new_empty(z.shape[0], z.shape[1] * 2 * (order + 1))


@statistics_backward.register_fake
def _(g: Tensor, phi: Tensor, z: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(z, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    z, active, *ctx.rest = inputs
    ctx.save_for_backward(output, z, active)


def _backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    phi, z, active = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be asked for: only the plain version has one
        order, rounding, *grid = ctx.rest
        again = _plain(SimpleNamespace(order=order, ROUNDING=rounding), z, grid_of(*grid), active)
        (g_z,) = torch.autograd.grad(again, z, g, create_graph=True)
    else:
        g_z = statistics_backward(g, phi, z, active, *ctx.rest)
    return (g_z, *(None for _ in range(1 + len(ctx.rest))))


statistics.register_autograd(_backward, setup_context=_save)


def _items(z: Tensor, active: Tensor | None) -> tuple[Any, Any, bool]:
    """Maps and masks, one a row; a mask of nothing where there is none."""
    signals = _array(z).reshape(-1, z.shape[-1])
    if active is None:
        return signals, np.empty((1, 0), np.uint8), False
    return signals, _array(active.view(torch.uint8)).reshape(signals.shape), True


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()
