"""The operation that keeps the largest value of all orientations of a feature."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.ops.cpu.arrays import as_pixel_rows
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.custom_op import CustomOp, gradients_in_new_thread, reference_gradients
from tigranet.ops.dispatch import operation, why_unsupported


@operation
def orientation_max(y: Float[Tensor, "batch maps nodes"], orientations: int) -> Float[Tensor, "batch features nodes"]:
    """Return the largest value of all orientations of each feature. Equal largest values share its gradient.

    Args:
        y: Maps ordered (orientation, feature).
        orientations: Number of orientations.

    Returns:
        One map per feature.
    """
    # Maps are stored pixel by pixel, so their gradient is, too, and is not copied.
    return y.transpose(1, 2).unflatten(2, (orientations, -1)).amax(2).transpose(1, 2)


@orientation_max.fused
def _fused(y: Tensor, orientations: int) -> Tensor:
    if y.device.type != "cpu" or not y.numel() or why_unsupported(y) is not None:
        return orientation_max.reference(y, orientations)
    return forward(y, orientations)


def _reference_backward(g: Tensor, y: Tensor, orientations: int) -> Tensor:
    g_y, _ = gradients_in_new_thread(orientation_max.reference, (y, orientations), (True, False), g)
    assert g_y is not None
    return g_y


forward = CustomOp("orientation_max", "Tensor y, int orientations", "Tensor", orientation_max.reference, grid=False)
backward = CustomOp(
    "orientation_max_backward", "Tensor g, Tensor y, int orientations", "Tensor", _reference_backward, grid=False
)


@forward.implementation("cpu")
def _cpu(y: Tensor, orientations: int) -> Tensor:
    from tigranet.ops.cpu import orientation_max as kernels

    out = _shape(y, orientations)
    rows, result = as_pixel_rows(y, y.shape[2]), out.numpy()
    share(lambda first, last: kernels.largest(rows, orientations, first, last, result), len(rows), y.numel())
    return out


@backward.implementation("cpu")
def _cpu_backward(g: Tensor, y: Tensor, orientations: int) -> Tensor:
    from tigranet.ops.cpu import orientation_max as kernels

    out = _shape_backward(g, y, orientations)
    rows, upstream = as_pixel_rows(y, y.shape[2]), g.detach().numpy()
    result = out.transpose(1, 2).numpy().reshape(rows.shape)
    share(lambda first, last: kernels.gradient(upstream, rows, orientations, first, last, result), len(rows), y.numel())
    return out


@forward.shapes
def _shape(y: Tensor, orientations: int) -> Tensor:
    return y.new_empty(len(y), y.shape[1] // orientations, y.shape[2])


@backward.shapes
def _shape_backward(g: Tensor, y: Tensor, orientations: int) -> Tensor:
    return y.new_empty(len(y), y.shape[2], y.shape[1]).transpose(1, 2)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    y, ctx.orientations = inputs
    ctx.save_for_backward(y)


@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor) -> tuple[Tensor | None, None]:
    (y,) = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be needed, and only the reference has one
        g_y, _ = reference_gradients(orientation_max.reference, (y, ctx.orientations), (True, False), g)
        return g_y, None
    return backward(g, y, ctx.orientations), None
