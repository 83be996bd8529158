"""Products of image gradients as one operator: the gradients are computed where they are needed, and none is saved."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tigranet.ops.custom_op import operator
from tigranet.ops.dispatch import choose, misfit
from tigranet.ops.grid_spec import MOST_THREADS, describe, flat, grid_of
from tigranet.ops.thread_pool import share

SHARED = 200 * 1024
"""Bytes of shared memory that hold the eight fields of a pair of maps, at most."""

_plain: Callable[..., Tensor]


def fused_products(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates the plain ``oriented(mixtures, laplacian, kinds)``: (batch, 2 pairs, nodes), f then g -> the products,
    kind after kind."""
    global _plain
    _plain = plain
    return choose(plain, _fused)


def _fused(mixtures: Tensor, laplacian: Any, kinds: int) -> Tensor | str:
    if (why := misfit(mixtures, laplacian=laplacian)) is not None:
        return why
    if mixtures.is_cuda and 8 * laplacian.num_nodes * mixtures.itemsize > SHARED:
        return f"that holds the gradients of two maps of {laplacian!r} in shared memory"
    if mixtures.is_cuda and laplacian.width > MOST_THREADS:
        return f"for rows as wide as those of {laplacian!r}"
    return products(mixtures, kinds, *describe(laplacian))


@operator("products")
def products(
    mixtures: Tensor, kinds: int, height: int, width: int, neighbours: int, torus: bool, diagonal: float
) -> Tensor:
    from tigranet.ops import cpu

    batch, maps, nodes = mixtures.shape
    _, measures, _ = flat((height, width, neighbours, torus, diagonal), mixtures.dtype)
    found = mixtures.new_empty(batch, kinds * maps // 2, nodes)
    signals = mixtures.detach().contiguous().numpy().reshape(batch, 2, maps // 2, nodes)
    out = found.numpy().reshape(batch, kinds, maps // 2, nodes)
    share(
        lambda first, last: cpu.products(signals, measures, kinds, first, last, out),
        batch * maps // 2,
        mixtures.numel() * 4,
    )
    return found


@operator("products_backward")
def products_backward(
    g: Tensor, mixtures: Tensor, kinds: int, height: int, width: int, neighbours: int, torus: bool, diagonal: float
) -> Tensor:
    from tigranet.ops import cpu

    batch, maps, nodes = mixtures.shape
    _, measures, _ = flat((height, width, neighbours, torus, diagonal), mixtures.dtype)
    g_mixtures = torch.empty_like(mixtures, memory_format=torch.contiguous_format)
    signals = mixtures.detach().contiguous().numpy().reshape(batch, 2, maps // 2, nodes)
    upstream = g.detach().contiguous().numpy().reshape(batch, kinds, maps // 2, nodes)
    out = g_mixtures.numpy().reshape(batch, 2, maps // 2, nodes)
    share(
        lambda first, last: cpu.products_backward(upstream, signals, measures, kinds, first, last, out),
        batch * maps // 2,
        mixtures.numel() * 10,
    )
    return g_mixtures


@products.register_fake
def _(mixtures: Tensor, kinds: int, *_: Any) -> Tensor:
    return mixtures.new_empty(mixtures.shape[0], kinds * mixtures.shape[1] // 2, mixtures.shape[2])


@products_backward.register_fake
def _(g: Tensor, mixtures: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(mixtures, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    mixtures, *ctx.rest = inputs
    ctx.save_for_backward(mixtures)


def _backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    (mixtures,) = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be asked for: only the plain version has one
        kinds, *grid = ctx.rest
        again = _plain(mixtures, grid_of(*grid), kinds)
        (g_mixtures,) = torch.autograd.grad(again, mixtures, g, create_graph=True)
    else:
        g_mixtures = products_backward(g, mixtures, *ctx.rest)
    return (g_mixtures, *(None for _ in ctx.rest))


products.register_autograd(_backward, setup_context=_save)
