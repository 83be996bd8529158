"""Computations over the whole batch when several processes train together and each has a part of it."""

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def is_single_process() -> bool:
    """Whether this process trains by itself.

    Returns:
        True without a process group, and in a process group of one process.
    """
    return not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1


class _GatherTensors(torch.autograd.Function):
    """Stack the tensors of all processes; the gradient of each is the sum over the losses of all processes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.stack(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        total = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total[dist.get_rank()]


def gather_rows(x: Float[Tensor, "part columns"]) -> Float[Tensor, "batch columns"]:
    """Concatenate the rows of all processes, with gradients.

    Args:
        x: The rows of this process. Each process may have a different number of rows, or none.

    Returns:
        The rows of all processes, in the order of their ranks. With a single process, this is ``x`` itself.
    """
    if is_single_process():
        return x
    counts = [torch.zeros(1, dtype=torch.int64, device=x.device) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor([len(x)], device=x.device))
    rows = [int(count) for count in counts]
    padded = F.pad(x, (0, 0, 0, max(rows) - len(x)))
    parts = _GatherTensors.apply(padded).unbind()  # type: ignore[no-untyped-call]
    return torch.cat([part[:count] for part, count in zip(parts, rows, strict=True)])


def moments(
    x: Float[Tensor, "part columns *nodes"],
) -> tuple[Float[Tensor, " columns"], Float[Tensor, " columns"], int]:
    r"""Compute the variance and the mean of each column over the rows and nodes of all processes, with gradients.

    Process p sends its count :math:`n_p`, its mean :math:`\mu_p` and its variance :math:`\sigma_p^2`, not its rows.
    With :math:`n = \sum_p n_p`, the moments of all rows are

    .. math::
        \mu = \sum_p \frac{n_p}{n} \mu_p, \qquad
        \sigma^2 = \sum_p \frac{n_p}{n} \left(\sigma_p^2 + (\mu_p - \mu)^2\right).

    Args:
        x: The rows of this process.

    Returns:
        The variance (divided by n), the mean, and the number n of values of each column.
    """
    axes = [0, *range(2, x.ndim)]
    count = x.numel() // x.shape[1]
    if is_single_process():
        return *(torch.var_mean(x, axes, correction=0) if count else (x.sum(axes), x.sum(axes))), count
    mean = x.sum(axes) / max(count, 1)
    variance = (x - mean.unflatten(0, (1, -1, *[1] * (x.ndim - 2)))).square().sum(axes) / max(count, 1)
    parts = gather_rows(torch.stack((torch.full_like(mean, count), mean, variance)).flatten()[None])
    counts, means, variances = parts.unflatten(1, (3, -1)).unbind(1)
    fractions = counts / counts.sum(0)
    mean = (fractions * means).sum(0)
    variance = (fractions * (variances + (means - mean).square())).sum(0)
    return variance, mean, int(counts[:, 0].sum())
