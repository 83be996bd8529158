"""Maps standardised by moments that are known, on a CPU, with what follows: PyTorch makes three or seven passes.

For one image each of those passes is shorter than waking the threads that it is shared out among.
"""

from typing import Any

import torch
from torch import Tensor

from tigranet.ops.custom_op import operator
from tigranet.ops.dispatch import asked, misfit
from tigranet.ops.thread_pool import share


def settled(
    z: Tensor,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    bias: Tensor | None = None,
    large: int = 0,
    behind: Tensor | None = None,
) -> Tensor | None:
    """``z`` (batch, maps, nodes) less the ``mean`` of each map over its standard deviation; with a ``bias`` (maps, 1),
    ReLU of that and it; with ``large``, its root beyond so many deviations, and the maps to be ``behind`` before it.
    None where there is no fused version (for gradients, on a GPU, with neither of the two), or a plain one was asked
    for."""
    learns = torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in (z, bias, behind))
    if learns or z.device.type != "cpu" or (bias is None) == (behind is None) or asked() == "plain":
        return None
    fits = misfit(z, mean, variance, bias, behind) is None
    return settle(z, mean, variance, eps, bias, large, behind) if fits else None


@operator("settle")
def settle(
    z: Tensor, mean: Tensor, variance: Tensor, eps: float, bias: Tensor | None, large: int, behind: Tensor | None
) -> Tensor:
    from tigranet.ops import cpu

    found = _empty(z, behind)
    signals, centre, spread, out = (part.detach().contiguous().numpy() for part in (z, mean, variance, found))
    given = None if bias is None else bias.detach().numpy().reshape(-1)
    ahead = None if behind is None else behind.detach().contiguous().numpy()

    def kernel(first: int, last: int) -> None:
        if ahead is None:
            cpu.rectified(signals, centre, spread, eps, given, first, last, out)
        else:
            cpu.rooted(signals, centre, spread, eps, large, ahead, first, last, out)

    share(kernel, found.shape[0] * found.shape[1], found.numel())
    return found


def _empty(z: Tensor, behind: Tensor | None) -> Tensor:
    batch, maps, nodes = z.shape
    return z.new_empty(batch, maps if behind is None else behind.shape[1] + maps, nodes)


@settle.register_fake
def _(z: Tensor, mean: Tensor, variance: Tensor, eps: float, bias: Any, large: int, behind: Tensor | None) -> Tensor:
    return _empty(z, behind)
