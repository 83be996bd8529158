"""The oriented products' operation: products of image gradients of pairs of maps."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.grid import GridLaplacian, Vector
from tigranet.ops.cpu.arrays import as_array
from tigranet.ops.cpu.flat_grid import flat_grid
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.custom_op import CustomOp, gradients_in_new_thread, reference_gradients
from tigranet.ops.dispatch import needs_gradient, operation, why_beyond_cuda_limits, why_unsupported
from tigranet.ops.grid_spec import GridSpec


@operation
def oriented_products(
    mixtures: Float[Tensor, "batch mixtures nodes"], laplacian: GridLaplacian, kinds: int
) -> Float[Tensor, "batch products nodes"]:
    r"""Compute products of the gradients of f and g, of first and of second order.

    These are :math:`\partial f\, \overline{\partial g}` and :math:`\partial^2 f\, \overline{\partial^2 g}`, with
    :math:`\partial f = f_x + i f_y` and :math:`\partial^2 f = f_{xx} - f_{yy} + 2 i f_{xy}`.

    Args:
        mixtures: Maps, (batch, 2 * pairs, nodes): all f, then all g.
        laplacian: The grid.
        kinds: 4 for real and imaginary parts, 2 for the real parts only.

    Returns:
        (batch, kinds * pairs, nodes): first order, then second order; each real part is followed by the imaginary one.
    """
    f, g = mixtures.chunk(2, dim=1)
    f1, g1 = laplacian.gradient(f), laplacian.gradient(g)
    f2, g2 = laplacian.twist(f1), laplacian.twist(g1)
    parts = [_real(f1, g1), _imaginary(f1, g1), _real(f2, g2), _imaginary(f2, g2)]
    return torch.cat(parts if kinds == 4 else parts[::2], dim=1)


def _real(a: Vector, b: Vector) -> Float[Tensor, "*batch nodes"]:
    """Return the real part of a times the conjugate of b."""
    return a[0] * b[0] + a[1] * b[1]


def _imaginary(a: Vector, b: Vector) -> Float[Tensor, "*batch nodes"]:
    """Return the imaginary part of a times the conjugate of b."""
    return a[1] * b[0] - a[0] * b[1]


@oriented_products.supported_by_kernels
def _check(mixtures: Tensor, laplacian: Any, kinds: int) -> str | None:
    if (reason := why_unsupported(mixtures, laplacian=laplacian)) is not None:
        return reason
    if mixtures.is_cuda:
        from tigranet.ops.cuda import oriented_products as kernels

        return why_beyond_cuda_limits(kernels.why_unsupported, mixtures, laplacian, needs_gradient(mixtures))
    return None


@oriented_products.fused
def _fused(mixtures: Tensor, laplacian: Any, kinds: int) -> Tensor:
    return forward(mixtures, kinds, GridSpec.of(laplacian))


def _reference(mixtures: Tensor, kinds: int, grid: GridSpec) -> Tensor:
    return oriented_products.reference(mixtures, grid.laplacian, kinds)


def _reference_backward(g: Tensor, mixtures: Tensor, kinds: int, grid: GridSpec) -> Tensor:
    (g_mixtures, *_) = gradients_in_new_thread(_reference, (mixtures, kinds, grid), (True, False, False), g)
    assert g_mixtures is not None
    return g_mixtures


forward = CustomOp("oriented_products", "Tensor mixtures, int kinds", "Tensor", _reference)
backward = CustomOp("oriented_products_backward", "Tensor g, Tensor mixtures, int kinds", "Tensor", _reference_backward)


@forward.implementation("cpu")
def _cpu(mixtures: Tensor, kinds: int, grid: GridSpec) -> Tensor:
    from tigranet.ops.cpu import oriented_products as kernels

    batch, maps, nodes = mixtures.shape
    pairs = maps // 2
    _, layout, _ = flat_grid(grid, mixtures.dtype)
    products = mixtures.new_empty(batch, kinds * pairs, nodes)
    signals = as_array(mixtures).reshape(batch, 2, pairs, nodes)
    out = products.numpy().reshape(batch, kinds, pairs, nodes)
    share(
        lambda first, last: kernels.oriented_products(signals, layout, kinds, first, last, out),
        batch * pairs,
        mixtures.numel() * 4,
    )
    return products


@backward.implementation("cpu")
def _cpu_backward(g: Tensor, mixtures: Tensor, kinds: int, grid: GridSpec) -> Tensor:
    from tigranet.ops.cpu import oriented_products as kernels

    batch, maps, nodes = mixtures.shape
    pairs = maps // 2
    _, layout, _ = flat_grid(grid, mixtures.dtype)
    g_mixtures = torch.empty_like(mixtures, memory_format=torch.contiguous_format)
    signals = as_array(mixtures).reshape(batch, 2, pairs, nodes)
    upstream = as_array(g).reshape(batch, kinds, pairs, nodes)
    out = g_mixtures.numpy().reshape(batch, 2, pairs, nodes)
    share(
        lambda first, last: kernels.oriented_products_backward(upstream, signals, layout, kinds, first, last, out),
        batch * pairs,
        mixtures.numel() * 10,
    )
    return g_mixtures


@forward.implementation("cuda")
def _cuda(mixtures: Tensor, kinds: int, grid: GridSpec) -> Tensor:
    from tigranet.ops.cuda import oriented_products as kernels

    return kernels.forward(mixtures, kinds, grid)


@backward.implementation("cuda")
def _cuda_backward(g: Tensor, mixtures: Tensor, kinds: int, grid: GridSpec) -> Tensor:
    from tigranet.ops.cuda import oriented_products as kernels

    return kernels.backward(g, mixtures, kinds, grid)


@forward.shapes
def _shape(mixtures: Tensor, kinds: int, grid: GridSpec) -> Tensor:
    return mixtures.new_empty(mixtures.shape[0], kinds * (mixtures.shape[1] // 2), mixtures.shape[2])


@backward.shapes
def _shape_backward(g: Tensor, mixtures: Tensor, kinds: int, grid: GridSpec) -> Tensor:
    return torch.empty_like(mixtures, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    mixtures, ctx.kinds, ctx.grid = inputs
    ctx.save_for_backward(mixtures)


@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    (mixtures,) = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be needed, and only the reference has one
        return reference_gradients(_reference, (mixtures, ctx.kinds, ctx.grid), ctx.needs_input_grad[:3], g)
    return backward(g, mixtures, ctx.kinds, ctx.grid), None, None
