"""Tensors as the NumPy arrays that the kernels read."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

NO_MASK = np.empty((1, 0), np.uint8)
"""What a kernel is given in place of a mask where there is none."""
VECTOR_BYTES = 64
"""Size of a vector of :mod:`tigranet.ops.cpu.vectors`: a register of AVX-512, and a cache line of most CPUs."""
PIECE_BYTES = 2 * VECTOR_BYTES
"""Size of the values at one pixel of the signals that :mod:`tigranet.ops.cpu.torus_spectrum` transforms at once."""


def as_array(tensor: Tensor) -> Any:
    """Return the numbers of a tensor as a contiguous array, without a copy where possible.

    Args:
        tensor: A tensor on the CPU.

    Returns:
        The array.
    """
    return tensor.detach().contiguous().numpy()


def as_mask(mask: Tensor | None, rows: int, nodes: int) -> tuple[Any, bool]:
    """Return a mask as bytes, and whether there is one.

    Args:
        mask: A boolean tensor of rows * nodes elements, or None.
        rows: The number of rows.
        nodes: The number of nodes.

    Returns:
        An array (rows, nodes), and True; or :data:`NO_MASK`, and False.
    """
    if mask is None:
        return NO_MASK, False
    return mask.contiguous().view(torch.uint8).numpy().reshape(rows, nodes), True


def as_pixel_rows(y: Tensor, height: int) -> Any:
    """Return maps of images row by row, with all maps of a pixel side by side.

    Args:
        y: Maps (batch, maps, nodes) on the CPU, not empty. They are copied unless they are stored pixel by pixel.
        height: Number of rows of an image.

    Returns:
        An array (batch * height, width * maps).
    """
    return y.detach().transpose(1, 2).contiguous().numpy().reshape(len(y) * height, -1)
