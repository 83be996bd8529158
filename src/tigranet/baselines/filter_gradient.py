"""Convolutions on a GPU whose filters have a gradient that is computed as one matrix product."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

PACK_BYTES = 8
"""Pixels are copied in packs of this size, which is faster than one 16-bit number at a time."""


def convolve(
    maps: Float[Tensor, "batch ins height width"], filters: Float[Tensor, "outs ins side side"]
) -> Float[Tensor, "batch outs height width"]:
    """Convolve maps with zero padding, like ``F.conv2d``, but with :func:`filter_gradient` in the backward pass.

    For 7x7 filters of hundreds of maps in 16-bit numbers, cuDNN 9.19 computes the gradient of the filters without
    tensor cores, which takes three quarters of a training step.

    Args:
        maps: The maps.
        filters: The filters, with an odd side length and of the same type as the maps.

    Returns:
        Maps of the same height and width.
    """
    return _Convolution.apply(maps, filters)  # type: ignore[no-untyped-call]


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps: Tensor, filters: Tensor) -> Tensor:
        ctx.save_for_backward(maps, filters)
        return F.conv2d(maps, filters, padding=filters.shape[-1] // 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        maps, filters = ctx.saved_tensors
        needs_maps, needs_filters = ctx.needs_input_grad
        reach = filters.shape[-1] // 2
        maps_gradient = None
        if needs_maps:
            geometry = ([1, 1], [reach, reach], [1, 1], False, [0, 0], 1)
            maps_gradient, _, _ = torch.ops.aten.convolution_backward(
                gradient, maps, filters, None, *geometry, [True, False, False]
            )
        return maps_gradient, filter_gradient(maps, gradient, filters.shape[-1]) if needs_filters else None


def filter_gradient(
    maps: Float[Tensor, "batch ins height width"], gradient: Float[Tensor, "batch outs height width"], side: int
) -> Float[Tensor, "outs ins {side} {side}"]:
    """Return the gradient of the filters of a convolution with zero padding.

    The windows of all pixels are the rows of one matrix, which has ``side`` * ``side`` times the size of the maps.

    Args:
        maps: The input of the convolution.
        gradient: Gradient of its output.
        side: Side length of the filters, odd.

    Returns:
        The gradient.
    """
    batch, ins, height, width = maps.shape
    reach = side // 2
    pixels = F.pad(maps.permute(0, 2, 3, 1), (0, 0, reach, reach, reach, reach)).contiguous()
    packs = pixels.view(torch.int64) if ins * pixels.element_size() % PACK_BYTES == 0 else pixels
    windows = packs.unfold(1, side, 1).unfold(2, side, 1).permute(0, 1, 2, 4, 5, 3)
    rows = windows.reshape(batch * height * width, -1).view(maps.dtype)
    products = gradient.permute(0, 2, 3, 1).reshape(len(rows), -1).T @ rows
    return products.unflatten(1, (side, side, ins)).permute(0, 3, 1, 2)
