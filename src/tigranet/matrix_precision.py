"""The precision of matrix products and convolutions in float32 on NVIDIA GPUs.

These GPUs can round the factors to 10 bits of mantissa (TF32), which is several times faster. By default PyTorch does
so in convolutions, but not in matrix products. Rounded, a network gives slightly different answers for an image and for
its quarter turn.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def matrix_precision(tf32: bool) -> Iterator[None]:
    """Set the precision of matrix products and convolutions within the block, and restore it afterwards.

    Args:
        tf32: Whether factors in float32 may be rounded to TF32.
    """
    previous = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        with _convolution_precision(tf32):
            yield
    finally:
        torch.set_float32_matmul_precision(previous)


@contextmanager
def convolutions_as_products() -> Iterator[None]:
    """Round the factors of convolutions within the block only if PyTorch is set to round those of matrix products.

    So convolutions are exact by default, too. Code that a compiler traces keeps the setting of the process.
    """
    if torch.compiler.is_compiling():
        yield
    else:
        with _convolution_precision(torch.get_float32_matmul_precision() != "highest"):
            yield


@contextmanager
def _convolution_precision(tf32: bool) -> Iterator[None]:
    previous = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = previous
