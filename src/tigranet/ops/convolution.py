"""The spectral convolution's operation: mixing, powers of L, filters and mask in one."""

from collections.abc import Iterable
from typing import Any

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
from tigranet.polynomials import powers


@operation
def convolution(
    y: Float[Tensor, "batch in_maps nodes"],
    alpha: Float[Tensor, "out_maps coefficients"],
    beta: Float[Tensor, " in_maps"],
    omega: Bool[Tensor, "batch 1 nodes"] | None,
    laplacian: Laplacian,
) -> Float[Tensor, "batch out_maps nodes"]:
    r"""Compute :math:`z_i = \sum_m \alpha_{i,m} L^m \sum_k \beta_k y_k`.

    Args:
        y: Maps.
        alpha: Coefficients of the filters.
        beta: Weights of the maps.
        omega: Nodes of interest; the result is zero elsewhere. None for all nodes.
        laplacian: The graph.

    Returns:
        The filtered maps.
    """
    mixture = _combine(beta, y.unsqueeze(2).unbind(1))
    z = _combine(alpha.T.unsqueeze(-1), powers(mixture, laplacian, alpha.shape[1] - 1))
    return z if omega is None else z * omega


def _combine(weights: Tensor, signals: Iterable[Tensor]) -> Tensor:
    """Sum weights[j] * signals[j] over j, in the same order at every node.

    A matrix product would be shorter, but it guarantees no order: two pixels that are equal by symmetry could then
    differ by rounding, and the pooling layer would see which one is larger.
    """
    return sum(weight * signal for weight, signal in zip(weights, signals, strict=True))


@convolution.supported_by_kernels
def _check(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, laplacian: Any) -> str | None:
    if (reason := why_unsupported(y, alpha, beta, omega, laplacian=laplacian)) is not None:
        return reason
    if omega is not None and (omega.shape != (y.shape[0], 1, y.shape[2]) or omega.dtype != torch.bool):
        return f"nodes of interest {omega.dtype} {tuple(omega.shape)} do not fit maps {tuple(y.shape)}"
    return None  # on a GPU, grids of any size: in shared memory, or streamed from memory


@convolution.fused
def _fused(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, laplacian: Any) -> Tensor:
    return forward(y, alpha, beta, omega, GridSpec.of(laplacian))


def _reference(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, grid: GridSpec) -> Tensor:
    return convolution.reference(y, alpha, beta, omega, grid.laplacian)


def _reference_backward(
    g: Tensor, y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, needs_y: bool, grid: GridSpec
) -> tuple[Tensor, Tensor, Tensor]:
    needed = (needs_y, True, True, False, False)
    g_y, g_alpha, g_beta, *_ = gradients_in_new_thread(_reference, (y, alpha, beta, omega, grid), needed, g)
    assert g_alpha is not None
    assert g_beta is not None
    return y.new_empty(0, *y.shape[1:]) if g_y is None else g_y, g_alpha, g_beta


forward = CustomOp("convolution", "Tensor y, Tensor alpha, Tensor beta, Tensor? omega", "Tensor", _reference)
backward = CustomOp(
    "convolution_backward",
    "Tensor g, Tensor y, Tensor alpha, Tensor beta, Tensor? omega, bool needs_y",
    "(Tensor, Tensor, Tensor)",
    _reference_backward,
)


@forward.implementation("cpu")
def _cpu(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, grid: GridSpec) -> Tensor:
    from tigranet.ops.cpu import convolution as kernels

    batch, _, nodes = y.shape
    s, layout, diagonal = flat_grid(grid, y.dtype)
    z = y.new_empty(batch, len(alpha), nodes)
    signals, a, b = as_array(y), as_array(alpha), as_array(beta)
    mask, masked = as_mask(omega, batch, nodes)
    out = z.numpy()
    share(
        lambda first, last: kernels.convolution(signals, a, b, mask, masked, s, layout, diagonal, first, last, out),
        batch,
        batch * nodes * (len(beta) + alpha.numel()),
    )
    return z


@backward.implementation("cpu")
def _cpu_backward(
    g: Tensor, y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, needs_y: bool, grid: GridSpec
) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.ops.cpu import convolution as kernels

    batch, maps, nodes = y.shape
    s, layout, diagonal = flat_grid(grid, y.dtype)
    upstream, signals, a, b = as_array(g), as_array(y), as_array(alpha), as_array(beta)
    mask, masked = as_mask(omega, batch, nodes)
    g_y = y.new_empty(y.shape if needs_y else (0, maps, nodes))
    g_alpha, g_beta = y.new_empty(batch, *alpha.shape), y.new_empty(batch, *beta.shape)
    out = g_y.numpy(), g_alpha.numpy(), g_beta.numpy()
    share(
        lambda first, last: kernels.convolution_backward(
            upstream, signals, a, b, mask, masked, s, layout, diagonal, needs_y, first, last, *out
        ),
        batch,
        batch * nodes * (len(beta) + 2 * alpha.numel()),
    )
    return g_y, g_alpha.sum(0), g_beta.sum(0)


@forward.implementation("cuda")
def _cuda(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, grid: GridSpec) -> Tensor:
    from tigranet.ops.cuda import convolution as kernels

    return kernels.forward(y, alpha, beta, omega, grid)


@backward.implementation("cuda")
def _cuda_backward(
    g: Tensor, y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, needs_y: bool, grid: GridSpec
) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.ops.cuda import convolution as kernels

    return kernels.backward(g, y, alpha, beta, omega, needs_y, grid)


@forward.shapes
def _shape(y: Tensor, alpha: Tensor, *_: Any) -> Tensor:
    return y.new_empty(y.shape[0], alpha.shape[0], y.shape[2])


@backward.shapes
def _shape_backward(
    g: Tensor, y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, needs_y: bool, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    g_y = y.new_empty(y.shape if needs_y else (0, *y.shape[1:]))
    return g_y, y.new_empty(alpha.shape), y.new_empty(beta.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.grid = inputs
    ctx.save_for_backward(*tensors)


@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    needed = ctx.needs_input_grad[:5]
    if torch.is_grad_enabled():  # a second derivative may be needed, and only the reference has one
        return reference_gradients(_reference, (*ctx.saved_tensors, ctx.grid), needed, g)
    gradients = backward(g, *ctx.saved_tensors, needed[0], ctx.grid)
    return (*(gradient if need else None for gradient, need in zip(gradients, needed, strict=False)), None, None)
