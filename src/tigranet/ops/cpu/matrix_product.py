"""The fastest matrix product of one thread.

PyTorch multiplies float32 matrices with MKL, which reaches four fifths of the arithmetic peak of an AMD processor.
oneDNN, which PyTorch contains too, generates code for the processor it runs on and is an eighth faster there. It copies
one factor into another order first, so small products are left to MKL.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

MIN_SIZE = 64
"""Number of rows, of columns, and of terms of each sum, from which on oneDNN is faster."""


def is_faster(a: Tensor, b: Tensor) -> bool:
    """Return whether :func:`matrix_product` is faster than PyTorch's product, which divides its work among threads.

    Args:
        a: The first factor, (rows, terms).
        b: The second factor, (..., terms, columns).

    Returns:
        True if oneDNN multiplies matrices of these sizes, in float32, in one thread.
    """
    return (
        a.dtype == b.dtype == torch.float32
        and min(*a.shape, b.shape[-1]) >= MIN_SIZE
        and torch.get_num_threads() == 1
        and bool(torch.backends.mkldnn.enabled)
        and torch.get_float32_matmul_precision() == "highest"
        and _linear() is not None
    )


def matrix_product(a: Tensor, b: Tensor) -> Tensor:
    """Multiply two matrices with oneDNN. Requires :func:`is_faster`.

    Args:
        a: The first factor, (rows, terms).
        b: The second factor, (terms, columns).

    Returns:
        The product, (rows, columns), contiguous.
    """
    linear = _linear()
    assert linear is not None
    return linear(a, b.t(), None, "none", [], "").contiguous()


@cache
def _linear() -> Callable[..., Any] | None:
    """Return PyTorch's linear layer with oneDNN, or None if this version of PyTorch has none that works."""
    a, b = torch.ones(2, 3), torch.ones(3, 4)
    try:
        linear: Callable[..., Any] = torch.ops.mkldnn._linear_pointwise.default
        return linear if torch.equal(linear(a, b.t(), None, "none", [], ""), a @ b) else None
    except (AttributeError, RuntimeError, TypeError):
        return None
