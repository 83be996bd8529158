"""Chebyshev polynomials and their weighted sum as two operators, each the adjoint of the other: L is symmetric."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tigranet.kernels.choice import choose, misfit
from tigranet.kernels.layout import describe, flat
from tigranet.kernels.threads import share


def fused_chebyshev_sum(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates ``plain(u, laplacian)``, where ``u`` (batch, terms, maps, nodes) are the signals of each order."""
    return choose(plain, _fused_sum)


def fused_chebyshev_basis(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates ``plain(y, laplacian, degree)``, which answers (batch, degree + 1, maps, nodes)."""
    return choose(plain, _fused_basis)


def _fused_sum(u: Tensor, laplacian: Any) -> Tensor | str:
    if (why := misfit(u[:, 0], laplacian=laplacian)) is not None:
        return why
    return "on a GPU" if u.is_cuda else chebyshev_sum(u, *describe(laplacian))


def _fused_basis(y: Tensor, laplacian: Any, degree: int) -> Tensor | str:
    if (why := misfit(y, laplacian=laplacian)) is not None:
        return why
    return "on a GPU" if y.is_cuda else chebyshev_basis(y, degree + 1, *describe(laplacian))


@torch.library.custom_op("tigranet::chebyshev_sum", mutates_args=(), device_types="cpu")
def chebyshev_sum(u: Tensor, height: int, width: int, neighbours: int, torus: bool, diagonal: float) -> Tensor:
    from tigranet.kernels import cpu_oriented

    s, measures, weight = flat((height, width, neighbours, torus, diagonal), u.dtype)
    z = u.new_empty(u.shape[0], *u.shape[2:])
    signals, out = u.detach().contiguous().numpy(), z.numpy()
    share(
        lambda first, last: cpu_oriented.chebyshev_sum(signals, s, measures, weight, first, last, out),
        u.shape[0] * u.shape[2],
        u.numel(),
    )
    return z


@torch.library.custom_op("tigranet::chebyshev_basis", mutates_args=(), device_types="cpu")
def chebyshev_basis(
    y: Tensor, terms: int, height: int, width: int, neighbours: int, torus: bool, diagonal: float
) -> Tensor:
    from tigranet.kernels import cpu_oriented

    s, measures, weight = flat((height, width, neighbours, torus, diagonal), y.dtype)
    t = y.new_empty(y.shape[0], terms, *y.shape[1:])
    signals, out = y.detach().contiguous().numpy(), t.numpy()
    share(
        lambda first, last: cpu_oriented.chebyshev_basis(signals, s, measures, weight, first, last, out),
        y.shape[0] * y.shape[1],
        t.numel(),
    )
    return t


@chebyshev_sum.register_fake
def _(u: Tensor, *_: Any) -> Tensor:
    return u.new_empty(u.shape[0], *u.shape[2:])


@chebyshev_basis.register_fake
def _(y: Tensor, terms: Any, *_: Any) -> Tensor:  # a symbol while a compiler traces
    return y.new_empty(y.shape[0], terms, *y.shape[1:])


def _save_sum(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    u, *ctx.grid = inputs
    ctx.terms = u.shape[1]


def _save_basis(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, _, *ctx.grid = inputs


chebyshev_sum.register_autograd(
    lambda ctx, g: (chebyshev_basis(g, ctx.terms, *ctx.grid), *(None for _ in ctx.grid)), setup_context=_save_sum
)
chebyshev_basis.register_autograd(
    lambda ctx, g: (chebyshev_sum(g, *ctx.grid), None, *(None for _ in ctx.grid)), setup_context=_save_basis
)
