"""Dynamic pooling: the strongest nodes of each map (Sec. 4.2)."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.ops import fused_pooling

Ties = Literal["keep", "strict"]


class DynamicPool(nn.Module):
    r"""The dynamic pooling layer of the paper (Algorithm 1): of the nodes in :math:`\Omega`, the
    ``num_active`` = :math:`J_l` with the highest values in :math:`z_i`, for each map i.

    It answers the sets :math:`N_i` as a mask, ``active``; their union over the maps is the next
    :math:`\Omega`, which is contained in this one. Reading 1: a set is never larger than
    :math:`\Omega` (the paper's loop runs to the maximum of the two sizes, we take the minimum).

    Where values tie, as on a blank background, the paper's algorithm picks any of them, and a turned
    image gets other nodes. Reading 16: with ``ties="keep"`` every node whose value is within
    ``tolerance`` times the map's largest magnitude of the J-th value is tied with it, and all are kept:
    more than J nodes then, but the same ones for every symmetry of the graph, and rounding, which is
    far smaller, breaks no tie. ``ties="strict"`` is the paper's: exactly J, an arbitrary choice among ties.

    Shapes: ``z`` (batch, maps, nodes), ``omega`` (batch, 1, nodes) -> ``active`` (batch, maps, nodes).

    >>> z = torch.tensor([[[3.0, 1.0, 2.0, 1.0]]])
    >>> DynamicPool(3)(z)
    tensor([[[True, True, True, True]]])
    >>> DynamicPool(3, ties="strict")(z).sum().item()
    3
    """

    def __init__(self, num_active: int, ties: Ties = "keep", tolerance: float = 1e-4) -> None:
        super().__init__()
        if num_active < 1:
            raise ValueError(f"num_active is at least 1, got {num_active}")
        if ties not in ("keep", "strict"):
            raise ValueError(f"ties is 'keep' or 'strict', got {ties!r}")
        if not 0 <= tolerance < 1:
            raise ValueError(f"tolerance is a fraction of the map's largest magnitude, in [0, 1), got {tolerance}")
        self.num_active, self.ties, self.tolerance = num_active, ties, tolerance

    @fused_pooling
    def forward(
        self, z: Float[Tensor, "batch maps nodes"], omega: Bool[Tensor, "batch 1 nodes"] | None = None
    ) -> Bool[Tensor, "batch maps nodes"]:
        if z.ndim != 3:
            raise ValueError(f"{self!r} reads maps (batch, maps, nodes), got shape {tuple(z.shape)}")
        z = z.detach()
        omega = torch.ones_like(z[:, :1], dtype=torch.bool) if omega is None else omega
        top = z.masked_fill(~omega, -torch.inf).topk(min(self.num_active, z.shape[-1]), sorted=False)
        if self.ties == "strict":
            active = torch.zeros_like(z, dtype=torch.bool).scatter(-1, top.indices, True)
        else:
            jth = top.values.amin(-1, keepdim=True)
            magnitude = (z * omega).abs().amax(-1, keepdim=True)
            active = z >= jth - self.tolerance * magnitude
        return active & omega

    def extra_repr(self) -> str:
        return f"{self.num_active}, ties={self.ties!r}"
