"""What several training processes must agree on."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def gathered(x: Float[Tensor, "part columns"]) -> Float[Tensor, "batch columns"]:
    """The rows of all processes, in the order of the processes, with gradients; ``x`` itself where there is but one.

    Each process may have another number of rows, or none.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return x
    import torch.distributed.nn.functional as with_gradients  # slow to load

    counts = [torch.zeros(1, dtype=torch.int64, device=x.device) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor([len(x)], device=x.device))
    rows = [int(count) for count in counts]
    parts = with_gradients.all_gather(F.pad(x, (0, 0, 0, max(rows) - len(x))))
    return torch.cat([part[:count] for part, count in zip(parts, rows, strict=True)])
