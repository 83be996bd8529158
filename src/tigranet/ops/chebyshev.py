"""The operations of the Chebyshev polynomials of maps, and of their sums: each is the adjoint of the other."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.laplacian import Laplacian
from tigranet.ops.cpu.arrays import as_array
from tigranet.ops.cpu.flat_grid import flat_grid
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.custom_op import CustomOp
from tigranet.ops.dispatch import needs_gradient, operation, why_beyond_cuda_limits, why_unsupported
from tigranet.ops.grid_spec import GridSpec
from tigranet.polynomials import chebyshev
from tigranet.polynomials import chebyshev_sum as clenshaw


@operation
def chebyshev_basis(
    y: Float[Tensor, "batch maps nodes"], laplacian: Laplacian, degree: int
) -> Float[Tensor, "batch orders_and_maps nodes"]:
    r"""Compute :math:`T_m(L - I)\, y` for m = 0 .. ``degree``.

    Args:
        y: Maps.
        laplacian: The graph.
        degree: The highest order.

    Returns:
        (batch, (degree + 1) * maps, nodes): all :math:`T_0 y`, then all :math:`T_1 y`, and so on.
    """
    return torch.cat(list(chebyshev(y, laplacian, degree)), dim=1)


@operation
def chebyshev_sum(
    u: Float[Tensor, "batch orders_and_maps nodes"], laplacian: Laplacian, degree: int
) -> Float[Tensor, "batch maps nodes"]:
    r"""Compute :math:`\sum_m T_m(L - I)\, u_m` for m = 0 .. ``degree``.

    Args:
        u: (batch, (degree + 1) * maps, nodes): all :math:`u_0`, then all :math:`u_1`, and so on.
        laplacian: The graph.
        degree: The highest order.

    Returns:
        The sums.
    """
    return clenshaw(u.chunk(degree + 1, dim=1), laplacian)


@chebyshev_basis.supported_by_kernels
@chebyshev_sum.supported_by_kernels
def _check(y: Tensor, laplacian: Any, degree: int) -> str | None:
    if (reason := why_unsupported(y, laplacian=laplacian)) is not None:
        return reason
    if y.is_cuda:
        from tigranet.ops.cuda import chebyshev as kernels

        return why_beyond_cuda_limits(kernels.why_unsupported, y, laplacian, needs_gradient(y))
    return None


@chebyshev_basis.fused
def _fused_basis(y: Tensor, laplacian: Any, degree: int) -> Tensor:
    return basis_op(y, degree, GridSpec.of(laplacian))


@chebyshev_sum.fused
def _fused_sum(u: Tensor, laplacian: Any, degree: int) -> Tensor:
    return sum_op(u, degree, GridSpec.of(laplacian))


def _reference_basis(y: Tensor, degree: int, grid: GridSpec) -> Tensor:
    return chebyshev_basis.reference(y, grid.laplacian, degree)


def _reference_sum(u: Tensor, degree: int, grid: GridSpec) -> Tensor:
    return chebyshev_sum.reference(u, grid.laplacian, degree)


basis_op = CustomOp("chebyshev_basis", "Tensor y, int degree", "Tensor", _reference_basis)
sum_op = CustomOp("chebyshev_sum", "Tensor u, int degree", "Tensor", _reference_sum)


@basis_op.implementation("cpu")
def _cpu_basis(y: Tensor, degree: int, grid: GridSpec) -> Tensor:
    t = _empty_basis(y, degree)
    basis_into(t, y, degree, grid)
    return t


@sum_op.implementation("cpu")
def _cpu_sum(u: Tensor, degree: int, grid: GridSpec) -> Tensor:
    z = _empty_sum(u, degree)
    sum_into(z, u, degree, grid)
    return z


def basis_into(t: Tensor, y: Tensor, degree: int, grid: GridSpec) -> None:
    """Compute all orders of maps on the CPU.

    Args:
        t: Where the orders are stored, (batch, (degree + 1) * maps, nodes), contiguous.
        y: The maps, (batch, maps, nodes).
        degree: The highest order.
        grid: The grid.
    """
    from tigranet.ops.cpu import chebyshev as kernels

    batch, maps, nodes = y.shape
    s, layout, diagonal = flat_grid(grid, y.dtype)
    signals = as_array(y).reshape(batch * maps, nodes)
    out = t.numpy().reshape(batch, degree + 1, maps, nodes)
    share(
        lambda first, last: kernels.chebyshev_basis(signals, s, layout, diagonal, degree, first, last, out),
        batch * maps,
        y.numel() * (degree + 1),
    )


def sum_into(z: Tensor, u: Tensor, degree: int, grid: GridSpec) -> None:
    """Compute the sums of the T_m u_m on the CPU.

    Args:
        z: Where the sums are stored, (batch, maps, nodes), contiguous.
        u: The maps u_0 .. u_degree, (batch, (degree + 1) * maps, nodes).
        degree: The highest order.
        grid: The grid.
    """
    from tigranet.ops.cpu import chebyshev as kernels

    batch, maps, nodes = z.shape
    s, layout, diagonal = flat_grid(grid, u.dtype)
    signals = as_array(u).reshape(batch, degree + 1, maps, nodes)
    out = z.numpy().reshape(batch * maps, nodes)
    share(
        lambda first, last: kernels.chebyshev_sum(signals, s, layout, diagonal, degree, first, last, out),
        batch * maps,
        u.numel(),
    )


@basis_op.implementation("cuda")
def _cuda_basis(y: Tensor, degree: int, grid: GridSpec) -> Tensor:
    from tigranet.ops.cuda import chebyshev as kernels

    return kernels.basis(y, degree, grid)


@sum_op.implementation("cuda")
def _cuda_sum(u: Tensor, degree: int, grid: GridSpec) -> Tensor:
    from tigranet.ops.cuda import chebyshev as kernels

    return kernels.summed(u, degree, grid)


@basis_op.shapes
def _empty_basis(y: Tensor, degree: int, grid: GridSpec | None = None) -> Tensor:
    return y.new_empty(y.shape[0], (degree + 1) * y.shape[1], y.shape[2])


@sum_op.shapes
def _empty_sum(u: Tensor, degree: int, grid: GridSpec | None = None) -> Tensor:
    return u.new_empty(u.shape[0], u.shape[1] // (degree + 1), u.shape[2])


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.degree, ctx.grid = inputs


@basis_op.gradient(_save)
def _gradient_of_basis(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    return sum_op(g, ctx.degree, ctx.grid), None, None


@sum_op.gradient(_save)
def _gradient_of_sum(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    return basis_op(g, ctx.degree, ctx.grid), None, None
