"""Batch normalisation over the images of all processes that train together."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tigranet.distributed import is_single_process, moments

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class _SynchronisedBatchNorm(nn.Module):
    """Mixin for PyTorch's batch normalisations: in training, the moments are those of all processes.

    PyTorch's own ``SyncBatchNorm`` works on GPUs only.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise a batch.

        Where no gradients are computed, every process has the same images, and nothing is exchanged.

        Args:
            x: The part of the batch of this process.

        Returns:
            The normalised part.
        """
        norm: Any = self
        if is_single_process() or not torch.is_grad_enabled() or not (self.training or norm.running_mean is None):
            return super().forward(x)
        values = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        variance, mean, count = moments(values)
        if self.training and norm.track_running_stats:
            norm.num_batches_tracked.add_(1)
            factor = 1 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
            norm.running_mean.lerp_(mean.detach().to(norm.running_mean.dtype), factor)
            unbiased = variance.detach() * (count / max(count - 1, 1))
            norm.running_var.lerp_(unbiased.to(norm.running_var.dtype), factor)
        shape = (1, -1, *[1] * (x.ndim - 2))
        scale = (variance + norm.eps).rsqrt()
        result = (values - mean.view(shape)) * scale.view(shape)
        if norm.affine:
            result = result * norm.weight.view(shape) + norm.bias.view(shape)
        return result.to(x.dtype)


@contextmanager
def synchronised_batch_norms(module: nn.Module, active: bool = True) -> Iterator[None]:
    """Let the batch normalisations of a network use the moments of all processes within the block.

    With the same images in all processes together, the result is that of one process with the whole batch, up to
    rounding. TIGraNet's own layers always do this.

    Args:
        module: The network. Names of parameters and buffers do not change.
        active: Whether to change anything.

    Example:
        >>> network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
        >>> with synchronised_batch_norms(network):
        ...     print(type(network[1]).__name__)
        SynchronisedBatchNorm2d
        >>> type(network[1]).__name__
        'BatchNorm2d'
    """
    parts = [part for part in module.modules() if active and type(part) in BATCH_NORMS]
    kinds = [type(part) for part in parts]
    try:
        for part, kind in zip(parts, kinds, strict=True):
            part.__class__ = type(f"Synchronised{kind.__name__}", (_SynchronisedBatchNorm, kind), {})
        yield
    finally:
        for part, kind in zip(parts, kinds, strict=True):
            part.__class__ = kind
