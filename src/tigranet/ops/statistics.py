"""The statistical layer's operation: mean and variance over the nodes of Chebyshev polynomials of each map."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tigranet.graphs.laplacian import Laplacian
from tigranet.ops.cpu.arrays import as_array, as_mask
from tigranet.ops.cpu.flat_grid import flat_grid
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.custom_op import CustomOp, gradients_in_new_thread, reference_gradients
from tigranet.ops.dispatch import operation, why_unsupported
from tigranet.ops.grid_spec import GridSpec
from tigranet.polynomials import chebyshev


@operation
def statistics(
    z: Float[Tensor, "batch maps nodes"],
    active: Bool[Tensor, "batch maps nodes"] | None,
    order: int,
    rounding: int,
    laplacian: Laplacian,
) -> Float[Tensor, "batch statistics"]:
    r"""Compute mean and variance over the nodes of :math:`|T_k(L - I)\, z|`, k = 0 .. ``order``, for each map.

    Args:
        z: Maps.
        active: Nodes that count; the maps are zero elsewhere. None for all nodes.
        order: The highest order.
        rounding: Magnitudes below this many units of rounding of the map's largest are zero in exact arithmetic. Their
            sign is noise, so their gradient is 0.
        laplacian: The graph.

    Returns:
        (batch, maps * (order + 1) * 2): map after map, order after order, mean and variance.
    """
    z = z if active is None else z * active  # a product, not a selection, so that a NaN is not hidden
    if not len(z):  # PyTorch would warn that the variance of an empty batch is undefined
        return z.new_zeros(0, z.shape[1] * 2 * (order + 1))
    noise = rounding * torch.finfo(z.dtype).eps * z.detach().abs().amax(-1, keepdim=True)
    phi = []
    for t in chebyshev(z, laplacian, order):
        magnitude = torch.where(t.abs() > noise, t, t.detach()).abs()
        sigma2, mu = torch.var_mean(magnitude, dim=-1, correction=0)
        phi += [mu, sigma2]
    return torch.stack(phi, dim=-1).flatten(1)


@statistics.supported_by_kernels
def _check(z: Tensor, active: Tensor | None, order: int, rounding: int, laplacian: Laplacian) -> str | None:
    if (reason := why_unsupported(z, active, laplacian=laplacian)) is not None:
        return reason
    if active is not None and (active.shape != z.shape or active.dtype != torch.bool):
        return f"active nodes {active.dtype} {tuple(active.shape)} do not fit maps {tuple(z.shape)}"
    return None  # on a GPU, grids of any size: in registers, or streamed from memory


@statistics.fused
def _fused(z: Tensor, active: Tensor | None, order: int, rounding: int, laplacian: Any) -> Tensor:
    return forward(z, active, order, rounding, GridSpec.of(laplacian))


def _reference(z: Tensor, active: Tensor | None, order: int, rounding: int, grid: GridSpec) -> Tensor:
    return statistics.reference(z, active, order, rounding, grid.laplacian)


def _reference_backward(
    g: Tensor, phi: Tensor, z: Tensor, active: Tensor | None, order: int, rounding: int, grid: GridSpec
) -> Tensor:
    inputs = (z, active, order, rounding, grid)
    (g_z, *_) = gradients_in_new_thread(_reference, inputs, (True, False, False, False, False), g)
    assert g_z is not None
    return g_z


forward = CustomOp("statistics", "Tensor z, Tensor? active, int order, int rounding", "Tensor", _reference)
backward = CustomOp(
    "statistics_backward",
    "Tensor g, Tensor phi, Tensor z, Tensor? active, int order, int rounding",
    "Tensor",
    _reference_backward,
)


@forward.implementation("cpu")
def _cpu(z: Tensor, active: Tensor | None, order: int, rounding: int, grid: GridSpec) -> Tensor:
    from tigranet.ops.cpu import statistics as kernels

    batch, maps, nodes = z.shape
    s, layout, diagonal = flat_grid(grid, z.dtype)
    phi = z.new_empty(batch, maps * 2 * (order + 1))
    signals = as_array(z).reshape(batch * maps, nodes)
    mask, masked = as_mask(active, batch * maps, nodes)
    out = phi.numpy().reshape(batch * maps, order + 1, 2)
    share(
        lambda first, last: kernels.statistics(signals, mask, masked, s, layout, diagonal, order, first, last, out),
        batch * maps,
        z.numel() * (order + 1),
    )
    return phi


@backward.implementation("cpu")
def _cpu_backward(
    g: Tensor, phi: Tensor, z: Tensor, active: Tensor | None, order: int, rounding: int, grid: GridSpec
) -> Tensor:
    from tigranet.ops.cpu import statistics as kernels

    batch, maps, nodes = z.shape
    s, layout, diagonal = flat_grid(grid, z.dtype)
    signals = as_array(z).reshape(batch * maps, nodes)
    mask, masked = as_mask(active, batch * maps, nodes)
    g_z = torch.empty_like(z, memory_format=torch.contiguous_format)
    shape = (batch * maps, order + 1, 2)
    noise = s.dtype.type(rounding * torch.finfo(z.dtype).eps)
    bits = np.empty(0, f"int{8 * s.itemsize}")
    values, upstream = as_array(phi).reshape(shape), as_array(g).reshape(shape)
    out = g_z.numpy().reshape(batch * maps, nodes)
    share(
        lambda first, last: kernels.statistics_backward(
            signals, mask, masked, s, layout, diagonal, order, noise, values, upstream, bits, first, last, out
        ),
        batch * maps,
        2 * z.numel() * (order + 1),
    )
    return g_z


@forward.implementation("cuda")
def _cuda(z: Tensor, active: Tensor | None, order: int, rounding: int, grid: GridSpec) -> Tensor:
    from tigranet.ops.cuda import statistics as kernels

    return kernels.forward(z, active, order, grid)


@backward.implementation("cuda")
def _cuda_backward(
    g: Tensor, phi: Tensor, z: Tensor, active: Tensor | None, order: int, rounding: int, grid: GridSpec
) -> Tensor:
    from tigranet.ops.cuda import statistics as kernels

    return kernels.backward(g, phi, z, active, order, rounding, grid)


@forward.shapes
def _shape(z: Tensor, active: Tensor | None, order: int, *_: Any) -> Tensor:
    return z.new_empty(z.shape[0], z.shape[1] * 2 * (order + 1))


@backward.shapes
def _shape_backward(g: Tensor, phi: Tensor, z: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(z, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], phi: Tensor) -> None:
    z, active, *ctx.rest = inputs
    ctx.save_for_backward(phi, z, active)


@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    phi, z, active = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be needed, and only the reference has one
        return reference_gradients(_reference, (z, active, *ctx.rest), ctx.needs_input_grad[:5], g)
    return backward(g, phi, z, active, *ctx.rest), None, None, None, None
