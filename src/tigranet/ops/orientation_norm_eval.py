"""The operation that normalises features with orientations by known moments, applies ReLU and adds a border."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tigranet.ops.cpu.arrays import as_pixel_rows
from tigranet.ops.custom_op import CustomOp, gradients_in_new_thread, reference_gradients
from tigranet.ops.dispatch import needs_gradient, operation, why_unsupported
from tigranet.ops.grid_spec import GridSpec
from tigranet.ops.mode import kernel_mode
from tigranet.ops.orientation_norm import (
    affine,
    empty_gradients,
    empty_padded,
    from_columns,
    pad_maps,
    rectify_rows,
    to_columns,
    why_not_on_grid,
)


@operation
def orientation_norm_eval(
    y: Float[Tensor, "batch maps nodes"],
    mean: Float[Tensor, " features"],
    variance: Float[Tensor, " features"],
    scale: Float[Tensor, " features"],
    bias: Float[Tensor, " features"],
    eps: float,
    border: int,
    grid: GridSpec,
) -> Float[Tensor, "batch maps padded_height padded_width"]:
    """Normalise features by known moments, apply ReLU, and add pixels around each image.

    Args:
        y: Maps ordered (orientation, feature).
        mean: The mean of each feature.
        variance: The variance of each feature.
        scale: See :func:`tigranet.ops.orientation_norm.orientation_norm`.
        bias: See there.
        eps: The number added to the variance.
        border: Number of pixels to add on each side, see :func:`tigranet.graphs.padding.pad_images`.
        grid: The grid of the maps.

    Returns:
        The padded images.
    """
    x = F.batch_norm(to_columns(y, len(scale)), mean, variance, scale, bias, training=False, eps=eps)
    return pad_maps(from_columns(F.relu(x)), border, grid)


@orientation_norm_eval.supported_by_kernels
def _check(
    y: Tensor,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor,
    bias: Tensor,
    eps: float,
    border: int,
    grid: GridSpec,
) -> str | None:
    if (reason := why_unsupported(y, mean, variance, scale, bias, half_on_cuda=True)) is not None:
        return reason
    return why_not_on_grid(y, grid)


@orientation_norm_eval.fused
def _fused(y: Tensor, mean: Tensor, variance: Tensor, scale: Tensor, bias: Tensor, *rest: Any) -> Tensor:
    # Without a backward kernel, autograd is faster than computing the reference again in the backward pass.
    has_kernels = backward.runs_on(y.device.type) or not needs_gradient(y, scale, bias)
    plain_is_faster = not has_kernels and kernel_mode() != "fused"
    if plain_is_faster or not y.numel():
        return orientation_norm_eval.reference(y, mean, variance, scale, bias, *rest)
    return forward(y, mean, variance, scale, bias, *rest)


def _reference_backward(
    g: Tensor, y: Tensor, mean: Tensor, variance: Tensor, scale: Tensor, bias: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor]:
    inputs = (y, mean, variance, scale, bias, *rest)
    needed = (True, False, False, True, True, *(False,) * len(rest))
    g_y, _, _, g_scale, g_bias, *_ = gradients_in_new_thread(orientation_norm_eval.reference, inputs, needed, g)
    assert g_y is not None
    assert g_scale is not None
    assert g_bias is not None
    return g_y, g_scale, g_bias


_ARGUMENTS = "Tensor y, Tensor mean, Tensor variance, Tensor scale, Tensor bias, float eps, int border"
forward = CustomOp("orientation_norm_eval", _ARGUMENTS, "Tensor", orientation_norm_eval.reference)
backward = CustomOp(
    "orientation_norm_eval_backward", f"Tensor g, {_ARGUMENTS}", "(Tensor, Tensor, Tensor)", _reference_backward
)


@forward.implementation("cpu")
def _cpu(
    y: Tensor,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor,
    bias: Tensor,
    eps: float,
    border: int,
    grid: GridSpec,
) -> Tensor:
    gain, offset = affine(mean, variance, scale, bias, eps)
    return rectify_rows(as_pixel_rows(y, grid.height), gain, offset, border, grid, y)


@forward.implementation("cuda")
def _cuda(*args: Any) -> Tensor:
    from tigranet.ops.cuda import orientation_norm as kernels

    return kernels.evaluate(*args)


@backward.implementation("cuda")
def _cuda_backward(
    g: Tensor,
    y: Tensor,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor,
    bias: Tensor,
    eps: float,
    border: int,
    grid: GridSpec,
) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.ops.cuda import orientation_norm as kernels

    return kernels.backward(g, y, mean, variance, scale, bias, eps, border, grid, known_moments=True)


@forward.shapes
def _shape(
    y: Tensor,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor,
    bias: Tensor,
    eps: float,
    border: int,
    grid: GridSpec,
) -> Tensor:
    return empty_padded(y, border, grid)


@backward.shapes
def _shape_backward(
    g: Tensor, y: Tensor, mean: Tensor, variance: Tensor, scale: Tensor, bias: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return empty_gradients(y, scale, bias)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    y, mean, variance, scale, bias, *ctx.rest = inputs
    ctx.save_for_backward(y, mean, variance, scale, bias)


@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    inputs = (*ctx.saved_tensors, *ctx.rest)
    needed = (*ctx.needs_input_grad[:5], *(False,) * len(ctx.rest))
    has_kernel = backward.runs_on(g.device.type) and not any(needed[1:3])  # none has gradients by the moments
    if has_kernel and not torch.is_grad_enabled():
        g_y, g_scale, g_bias = backward(g, *inputs)
        return g_y, None, None, g_scale, g_bias, *(None,) * len(ctx.rest)
    with torch.enable_grad():
        gradients = reference_gradients(orientation_norm_eval.reference, inputs, needed, g)
    if torch.is_grad_enabled():
        return gradients
    return tuple(None if gradient is None else gradient.detach() for gradient in gradients)
