"""The operation that normalises features with orientations by known moments, applies ReLU and adds a border."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.padding import pad_images
from tigranet.ops.cpu.arrays import as_pixel_rows
from tigranet.ops.custom_op import CustomOp, reference_gradients
from tigranet.ops.dispatch import needs_gradient, operation, why_unsupported
from tigranet.ops.mode import kernel_mode
from tigranet.ops.orientation_norm import affine, empty_padded, from_columns, rectify_rows, to_columns


@operation
def orientation_norm_eval(
    y: Float[Tensor, "batch maps nodes"],
    mean: Float[Tensor, " features"],
    variance: Float[Tensor, " features"],
    scale: Float[Tensor, " features"],
    bias: Float[Tensor, " features"],
    eps: float,
    height: int,
    width: int,
    border: int,
    wrap_rows: bool,
    wrap_columns: bool,
) -> Float[Tensor, "batch maps padded_height padded_width"]:
    """Normalise features by known moments, apply ReLU, and add pixels around each image.

    Args:
        y: Maps ordered (orientation, feature).
        mean: The mean of each feature.
        variance: The variance of each feature.
        scale: See :func:`tigranet.ops.orientation_norm.orientation_norm`.
        bias: See there.
        eps: The number added to the variance.
        height: Number of rows of the images.
        width: Number of columns.
        border: Number of pixels to add on each side, see :func:`pad_images`.
        wrap_rows: Whether added rows come from the opposite side.
        wrap_columns: The same for columns.

    Returns:
        The padded images.
    """
    x = F.batch_norm(to_columns(y, len(scale)), mean, variance, scale, bias, training=False, eps=eps)
    return pad_images(from_columns(F.relu(x)).unflatten(2, (height, width)), border, wrap_rows, wrap_columns)


@orientation_norm_eval.supported_by_kernels
def _check(y: Tensor, mean: Tensor, variance: Tensor, scale: Tensor, bias: Tensor, *_: Any) -> str | None:
    return why_unsupported(y, mean, variance, scale, bias)


@orientation_norm_eval.fused
def _fused(y: Tensor, mean: Tensor, variance: Tensor, scale: Tensor, bias: Tensor, *rest: Any) -> Tensor:
    # Where gradients are needed, autograd is faster than computing the reference again in the backward pass. There are
    # no kernels for GPUs.
    plain_is_faster = needs_gradient(y, scale, bias) and kernel_mode() != "fused"
    if plain_is_faster or y.device.type != "cpu" or not y.numel():
        return orientation_norm_eval.reference(y, mean, variance, scale, bias, *rest)
    return forward(y, mean, variance, scale, bias, *rest)


forward = CustomOp(
    "orientation_norm_eval",
    "Tensor y, Tensor mean, Tensor variance, Tensor scale, Tensor bias, float eps, SymInt height, SymInt width, "
    "int border, bool wrap_rows, bool wrap_columns",
    "Tensor",
    orientation_norm_eval.reference,
    grid=False,
)


@forward.implementation("cpu")
def _cpu(
    y: Tensor,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor,
    bias: Tensor,
    eps: float,
    height: int,
    width: int,
    border: int,
    wrap_rows: bool,
    wrap_columns: bool,
) -> Tensor:
    out = empty_padded(y, height, width, border)
    gain, offset = affine(mean, variance, scale, bias, eps)
    rectify_rows(as_pixel_rows(y, height), gain, offset, height, border, wrap_rows, wrap_columns, out)
    return out


@forward.shapes
def _shape(
    y: Tensor,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor,
    bias: Tensor,
    eps: float,
    height: int,
    width: int,
    border: int,
    *_: Any,
) -> Tensor:
    return empty_padded(y, height, width, border)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    y, mean, variance, scale, bias, *ctx.rest = inputs
    ctx.save_for_backward(y, mean, variance, scale, bias)


@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    inputs = (*ctx.saved_tensors, *ctx.rest)
    with torch.enable_grad():
        gradients = reference_gradients(orientation_norm_eval.reference, inputs, ctx.needs_input_grad, g)
    if torch.is_grad_enabled():
        return gradients
    return tuple(None if gradient is None else gradient.detach() for gradient in gradients)
