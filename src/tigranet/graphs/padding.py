"""Add pixels around an image: copies of the border, or the opposite side."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.torch_compat import knows_memory_formats


def pad_images(
    images: Float[Tensor, "*batch height width"], border: int, wrap_rows: bool, wrap_columns: bool
) -> Float[Tensor, "*batch padded_height padded_width"]:
    """Add pixels on each side of images.

    PyTorch can do this too. On a GPU, the gradient of its repeated border is not deterministic, and a concatenation of
    slices has a slow gradient.

    Args:
        images: The images.
        border: Number of pixels to add on each side.
        wrap_rows: Whether rows come from the opposite side, instead of being copies of the first or last row.
        wrap_columns: The same for columns.

    Returns:
        The padded images, in the memory format of ``images``.
    """
    if border == 0:
        return images
    if torch.compiler.is_compiling():  # a compiler cannot trace a function with its own derivatives
        rows, columns = (
            _sources(images.shape[axis], border, wraps, images.device)
            for axis, wraps in ((-2, wrap_rows), (-1, wrap_columns))
        )
        return images.index_select(-2, rows).index_select(-1, columns)
    return _pad(images, border, wrap_rows, wrap_columns)


def _sources(size: int, border: int, wraps: bool, device: torch.device) -> Int[Tensor, " padded_size"]:
    """Return the position inside the image that each position of a padded axis is a copy of."""
    positions = torch.arange(-border, size + border, device=device)
    return positions % size if wraps else positions.clamp(0, size - 1)


class _Pad(torch.autograd.Function):
    """Copy rows and then columns outwards. The gradient adds up columns and then rows."""

    generate_vmap_rule = True

    @staticmethod
    def forward(images: Tensor, border: int, wrap_rows: bool, wrap_columns: bool) -> Tensor:
        *batch, height, width = images.shape
        padded_size = (height + 2 * border, width + 2 * border)
        if images.ndim == 4 and knows_memory_formats() and images.is_contiguous(memory_format=torch.channels_last):
            padded = images.new_empty(batch[0], *padded_size, batch[1]).permute(0, 3, 1, 2)
        else:
            padded = images.new_empty(*batch, *padded_size)
        padded[..., border:-border, border:-border] = images
        for axis, size, wraps in ((-2, height, wrap_rows), (-1, width, wrap_columns)):
            for target, source in _border_positions(size, border, wraps):
                padded.select(axis, target).copy_(padded.select(axis, source))
        return padded

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        images, ctx.border, ctx.wrap_rows, ctx.wrap_columns = inputs
        ctx.size = images.shape[-2:]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (height, width), border = ctx.size, ctx.border
        rows, columns = gradient.narrow(-2, border, height), _border_positions(width, border, ctx.wrap_columns)
        inner = _fold_columns(rows, border, width, columns)
        for target, source in _border_positions(height, border, ctx.wrap_rows):
            row = _fold_columns(gradient.narrow(-2, target, 1), border, width, columns)
            inner.narrow(-2, source - border, 1).add_(row)
        return inner, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Tensor:
        return pad_images(tangent, ctx.border, ctx.wrap_rows, ctx.wrap_columns)


_pad: Callable[..., Tensor] = _Pad.apply


def _fold_columns(gradient: Tensor, border: int, width: int, columns: list[tuple[int, int]]) -> Tensor:
    """Add the gradients of the added columns to those of the columns that they are copies of."""
    inner = gradient.narrow(-1, border, width).clone()
    for target, source in columns:
        inner.select(-1, source - border).add_(gradient.select(-1, target))
    return inner


def _border_positions(size: int, border: int, wraps: bool) -> list[tuple[int, int]]:
    """Return the positions of the added pixels along one axis, and those inside the image that they are copies of."""
    added = [*range(border), *range(border + size, size + 2 * border)]
    if wraps:
        return [(position, border + (position - border) % size) for position in added]
    return [(position, min(max(position, border), border + size - 1)) for position in added]
