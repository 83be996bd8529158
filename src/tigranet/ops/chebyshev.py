"""Chebyshev polynomials of maps, and sums of them, as two operators: each is the other's adjoint, and saves nothing."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from tigranet.ops.custom_op import operator
from tigranet.ops.dispatch import choose, misfit
from tigranet.ops.grid_spec import MOST_THREADS, Grid, describe, flat, in_shared
from tigranet.ops.thread_pool import share


def fused_chebyshev(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates the plain ``basis(y, laplacian, degree)``: t_0 .. t_degree of all maps, one after the other."""
    return choose(plain, lambda y, laplacian, degree: _fused(chebyshev, y, laplacian, degree))


def fused_chebyshev_sum(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates the plain ``summed(u, laplacian, degree)``: the sum of the T_m of the maps u_m."""
    return choose(plain, lambda u, laplacian, degree: _fused(chebyshev_sum, u, laplacian, degree))


def _fused(operator: Callable[..., Tensor], y: Tensor, laplacian: Any, degree: int) -> Tensor | str:
    if (why := misfit(y, laplacian=laplacian)) is not None:
        return why
    if y.is_cuda and not in_shared(laplacian.height, laplacian.width, y.itemsize):
        return f"that holds a map of {laplacian!r} in shared memory"
    if y.is_cuda and laplacian.width > MOST_THREADS:
        return f"for rows as wide as those of {laplacian!r}"
    return operator(y, degree, *describe(laplacian))


@operator("chebyshev")
def chebyshev(y: Tensor, degree: int, height: int, width: int, neighbours: int, torus: bool, diagonal: float) -> Tensor:
    t = y.new_empty(y.shape[0], (degree + 1) * y.shape[1], y.shape[2])
    orders_into(t, y, degree, (height, width, neighbours, torus, diagonal))
    return t


@operator("chebyshev_sum")
def chebyshev_sum(
    u: Tensor, degree: int, height: int, width: int, neighbours: int, torus: bool, diagonal: float
) -> Tensor:
    z = u.new_empty(u.shape[0], u.shape[1] // (degree + 1), u.shape[2])
    sum_into(z, u, degree, (height, width, neighbours, torus, diagonal))
    return z


def orders_into(t: Tensor, y: Tensor, degree: int, grid: Grid) -> None:
    """On a CPU: all orders of ``y``, to where there is room for them."""
    from tigranet.ops import cpu

    batch, maps, nodes = y.shape
    s, measures, weight = flat(grid, y.dtype)
    signals = y.detach().contiguous().numpy().reshape(batch * maps, nodes)
    out = t.numpy().reshape(batch, degree + 1, maps, nodes)
    share(
        lambda first, last: cpu.chebyshev(signals, s, measures, weight, degree, first, last, out),
        batch * maps,
        y.numel() * (degree + 1),
    )


def sum_into(z: Tensor, u: Tensor, degree: int, grid: Grid) -> None:
    """On a CPU: the sum of the T_m of the maps u_m, to where there is room for it."""
    from tigranet.ops import cpu

    batch, maps, nodes = z.shape
    s, measures, weight = flat(grid, u.dtype)
    signals = u.detach().contiguous().numpy().reshape(batch, degree + 1, maps, nodes)
    out = z.numpy().reshape(batch * maps, nodes)
    share(
        lambda first, last: cpu.chebyshev_sum(signals, s, measures, weight, degree, first, last, out),
        batch * maps,
        u.numel(),
    )


@chebyshev.register_fake
def _(y: Tensor, degree: int, *_: Any) -> Tensor:
    return y.new_empty(y.shape[0], (degree + 1) * y.shape[1], y.shape[2])


@chebyshev_sum.register_fake
def _(u: Tensor, degree: int, *_: Any) -> Tensor:
    return u.new_empty(u.shape[0], u.shape[1] // (degree + 1), u.shape[2])


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.degree, *ctx.grid = inputs


def _backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    return (chebyshev_sum(g, ctx.degree, *ctx.grid), None, *(None for _ in ctx.grid))


def _backward_of_sum(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    return (chebyshev(g, ctx.degree, *ctx.grid), None, *(None for _ in ctx.grid))


chebyshev.register_autograd(_backward, setup_context=_save)
chebyshev_sum.register_autograd(_backward_of_sum, setup_context=_save)
