"""The spectral convolution as one operator: mixing, powers of L, filters, omega; nothing saved but the input."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tigranet.ops.custom_op import by_plain, operator
from tigranet.ops.dispatch import choose, misfit
from tigranet.ops.grid_spec import describe, flat, grid_of
from tigranet.ops.thread_pool import share

_plain: Callable[..., Tensor]


def fused_convolution(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates the plain ``forward(layer, y, laplacian, omega)`` of a layer with ``alpha`` and ``beta``."""
    global _plain
    _plain = plain
    return choose(plain, _fused)


def _fused(layer: Any, y: Tensor, laplacian: Any, omega: Tensor | None = None) -> Tensor | str:
    if (why := misfit(y, layer.alpha, layer.beta, omega, laplacian=laplacian)) is not None:
        return why
    if y.shape[1] != len(layer.beta):
        return f"for {y.shape[1]} maps where {len(layer.beta)} are read"
    if omega is not None and (omega.shape != (y.shape[0], 1, y.shape[2]) or omega.dtype != torch.bool):
        return f"for nodes of interest {omega.dtype} {tuple(omega.shape)}"
    return convolution(y, layer.alpha, layer.beta, omega, *describe(laplacian))


@operator("convolution")
def convolution(
    y: Tensor,
    alpha: Tensor,
    beta: Tensor,
    omega: Tensor | None,
    height: int,
    width: int,
    neighbours: int,
    torus: bool,
    diagonal: float,
) -> Tensor:
    from tigranet.ops import cpu

    batch, _, nodes = y.shape
    s, measures, weight = flat((height, width, neighbours, torus, diagonal), y.dtype)
    z = y.new_empty(batch, len(alpha), nodes)
    signals, a, b, mask, masked = _arrays(y, alpha, beta, omega)
    out = z.numpy()
    share(
        lambda first, last: cpu.convolution(signals, a, b, mask, masked, s, measures, weight, first, last, out),
        batch,
        batch * nodes * (len(beta) + alpha.numel()),
    )
    return z


@operator("convolution_backward")
def convolution_backward(
    g: Tensor,
    y: Tensor,
    alpha: Tensor,
    beta: Tensor,
    omega: Tensor | None,
    wanted: bool,
    height: int,
    width: int,
    neighbours: int,
    torus: bool,
    diagonal: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients by y (empty unless ``wanted``), alpha and beta."""
    from tigranet.ops import cpu

    batch, maps, nodes = y.shape
    s, measures, weight = flat((height, width, neighbours, torus, diagonal), y.dtype)
    signals, a, b, mask, masked = _arrays(y, alpha, beta, omega)
    g_y = y.new_empty(y.shape if wanted else (0, maps, nodes))
    g_alpha, g_beta = y.new_empty(batch, *alpha.shape), y.new_empty(batch, *beta.shape)
    upstream, outs = g.detach().contiguous().numpy(), (g_y.numpy(), g_alpha.numpy(), g_beta.numpy())
    share(
        lambda first, last: cpu.convolution_backward(
            upstream, signals, a, b, mask, masked, s, measures, weight, wanted, first, last, *outs
        ),
        batch,
        batch * nodes * (len(beta) + 2 * alpha.numel()),
    )
    return g_y, g_alpha.sum(0), g_beta.sum(0)


@convolution.register_fake
def _(y: Tensor, alpha: Tensor, *_: Any) -> Tensor:
    return y.new_empty(y.shape[0], alpha.shape[0], y.shape[2])


@convolution_backward.register_fake
def _(
    g: Tensor, y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, wanted: bool, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    g_y = y.new_empty(y.shape if wanted else (0, *y.shape[1:]))
    return g_y, y.new_empty(alpha.shape), y.new_empty(beta.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    y, alpha, beta, omega, *ctx.grid = inputs
    ctx.save_for_backward(y, alpha, beta, omega)


def _backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    y, alpha, beta, omega = ctx.saved_tensors
    wanted = ctx.needs_input_grad[:3]
    if torch.is_grad_enabled():  # a second derivative may be asked for: only the plain version has one
        layer = SimpleNamespace(alpha=alpha, beta=beta, in_maps=len(beta), degree=alpha.shape[1] - 1)
        gradients = by_plain(lambda: _plain(layer, y, grid_of(*ctx.grid), omega), (y, alpha, beta), wanted, g)
    else:
        computed = convolution_backward(g, y, alpha, beta, omega, wanted[0], *ctx.grid)
        gradients = tuple(gradient if want else None for gradient, want in zip(computed, wanted, strict=True))
    return (*gradients, *(None for _ in range(1 + len(ctx.grid))))


convolution.register_autograd(_backward, setup_context=_save)


def _arrays(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None) -> tuple[Any, Any, Any, Any, bool]:
    signals, a, b = (tensor.detach().contiguous().numpy() for tensor in (y, alpha, beta))
    if omega is None:
        return signals, a, b, np.empty((1, 0), np.uint8), False
    return signals, a, b, omega.contiguous().view(torch.uint8).numpy().reshape(len(y), y.shape[2]), True
