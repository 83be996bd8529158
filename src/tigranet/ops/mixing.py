"""Maps mixed and filtered, some images at a time: on a CPU all mixtures of a batch are more than a cache holds, and
writing them out to read them again takes as long as the matrix product that makes them."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from tigranet.ops.chebyshev import orders_into, sum_into
from tigranet.ops.custom_op import by_plain, operator
from tigranet.ops.dispatch import choose, misfit
from tigranet.ops.grid_spec import describe, grid_of

HELD = 2 * 1024 * 1024
"""Bytes of mixtures made before they are read, about."""

_plain: Callable[..., Tensor]


def fused_mixed(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates the plain ``mixed(weights, y, laplacian, degree)``: mixtures u_0 .. u_degree of the maps, then the sum
    of the T_m u_m. On a GPU, and where a cache holds all mixtures, the two are fused each for itself."""
    global _plain
    _plain = plain
    return choose(plain, _fused)


def _fused(weights: Tensor, y: Tensor, laplacian: Any, degree: int) -> Tensor | str:
    if (why := misfit(y, weights, laplacian=laplacian)) is not None:
        return why
    if y.is_cuda or torch.is_autocast_enabled("cpu") or len(y) * _bytes(weights, y) <= HELD:
        return _plain(weights, y, laplacian, degree)
    return mixed(weights, y, degree, *describe(laplacian))


@operator("mixed")
def mixed(
    weights: Tensor, y: Tensor, degree: int, height: int, width: int, neighbours: int, torus: bool, diagonal: float
) -> Tensor:
    grid = height, width, neighbours, torus, diagonal
    weights, y = weights.detach(), y.detach()
    z = y.new_empty(len(y), len(weights) // (degree + 1), y.shape[2])
    for part, u in _parts(weights, y):
        torch.bmm(weights.expand(len(u), -1, -1), y[part], out=u)
        sum_into(z[part], u, degree, grid)
    return z


@operator("mixed_backward")
def mixed_backward(
    g: Tensor,
    weights: Tensor,
    y: Tensor,
    degree: int,
    height: int,
    width: int,
    neighbours: int,
    torus: bool,
    diagonal: float,
) -> tuple[Tensor, Tensor]:
    """The gradients by the weights and by y."""
    grid = height, width, neighbours, torus, diagonal
    g, weights, y = g.detach(), weights.detach(), y.detach()
    g_weights, g_y = torch.zeros_like(weights, memory_format=torch.contiguous_format), y.new_empty(y.shape)
    for part, t in _parts(weights, y):
        orders_into(t, g[part], degree, grid)
        torch.bmm(weights.t().expand(len(t), -1, -1), t, out=g_y[part])
        g_weights += torch.bmm(t, y[part].transpose(1, 2)).sum(0)
    return g_weights, g_y


def _bytes(weights: Tensor, y: Tensor) -> int:
    """Of the mixtures of an image."""
    return len(weights) * y.shape[2] * y.itemsize


def _parts(weights: Tensor, y: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Some images at a time, and room for their mixtures, the same for all."""
    count = max(1, HELD // max(1, _bytes(weights, y)))
    room = y.new_empty(min(count, len(y)), len(weights), y.shape[2])
    for first in range(0, len(y), count):
        yield slice(first, first + count), room[: len(y) - first]


@mixed.register_fake
def _(weights: Tensor, y: Tensor, degree: int, *_: Any) -> Tensor:
    return y.new_empty(len(y), len(weights) // (degree + 1), y.shape[2])


@mixed_backward.register_fake
def _(g: Tensor, weights: Tensor, y: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(weights, memory_format=torch.contiguous_format), y.new_empty(y.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    weights, y, *ctx.rest = inputs
    ctx.save_for_backward(weights, y)


def _backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    weights, y = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be asked for
        degree, *grid = ctx.rest
        inputs, wanted = (weights, y), ctx.needs_input_grad[:2]
        found = by_plain(lambda: _plain(weights, y, grid_of(*grid), degree), inputs, wanted, g)
    else:
        found = mixed_backward(g, weights, y, *ctx.rest)
    return (*found, *(None for _ in ctx.rest))


mixed.register_autograd(_backward, setup_context=_save)
