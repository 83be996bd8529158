"""What several training processes must agree on."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def alone() -> bool:
    """Whether one process trains by itself."""
    return not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1


def gathered(x: Float[Tensor, "part columns"]) -> Float[Tensor, "batch columns"]:
    """The rows of all processes, in the order of the processes, with gradients; ``x`` itself where there is but one.

    Each process may have another number of rows, or none.
    """
    if alone():
        return x
    import torch.distributed.nn.functional as with_gradients  # slow to load

    counts = [torch.zeros(1, dtype=torch.int64, device=x.device) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor([len(x)], device=x.device))
    rows = [int(count) for count in counts]
    parts = with_gradients.all_gather(F.pad(x, (0, 0, 0, max(rows) - len(x))))
    return torch.cat([part[:count] for part, count in zip(parts, rows, strict=True)])


def moments(
    x: Float[Tensor, "part columns *nodes"],
) -> tuple[Float[Tensor, " columns"], Float[Tensor, " columns"], int]:
    """Variance (with 1/n) and mean of each column over the rows of all processes and their nodes; and n.

    Where there are several processes each sends its own two moments, not its rows.
    """
    axes = [0, *range(2, x.ndim)]
    count = x.numel() // x.shape[1]
    if alone():
        return *(torch.var_mean(x, axes, correction=0) if count else (x.sum(axes), x.sum(axes))), count
    mean = x.sum(axes) / max(count, 1)
    variance = (x - mean.unflatten(0, (1, -1, *[1] * (x.ndim - 2)))).square().sum(axes) / max(count, 1)
    parts = gathered(torch.stack((torch.full_like(mean, count), mean, variance)).flatten()[None])
    counts, means, variances = parts.unflatten(1, (3, -1)).unbind(1)
    share = counts / counts.sum(0)
    mean = (share * means).sum(0)
    variance = (share * (variances + (means - mean).square())).sum(0)
    return variance, mean, int(counts[:, 0].sum())
