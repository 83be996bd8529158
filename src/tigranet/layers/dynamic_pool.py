"""Dynamic pooling: the strongest nodes of each map (Sec. 4.2)."""

from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.ops import pooling

Ties = Literal["keep", "strict"]


class DynamicPool(nn.Module):
    r"""The dynamic pooling layer of the paper (Algorithm 1).

    For each map i it selects, among the nodes in :math:`\Omega`, the ``num_active`` = :math:`J_l` nodes with the
    highest values of :math:`z_i`.

    It returns the sets :math:`N_i` as a mask, ``active``. Their union over the maps is the next :math:`\Omega`, which
    is contained in this one. Reading 1: a set is never larger than :math:`\Omega` (the paper's loop runs to the
    maximum of the two sizes, we take the minimum).

    Where values are equal, as on a blank background, the paper's algorithm picks any of them, and a rotated image gets
    different nodes. Reading 16: with ``ties="keep"``, every node whose value is within ``tolerance`` times the map's
    largest magnitude of the J-th value is tied with it, and all tied nodes are kept. There can then be more than J
    nodes, but they are the same for every symmetry of the graph, and rounding, which is far smaller than the
    tolerance, breaks no tie. ``ties="strict"`` is the paper's rule: exactly J nodes, an arbitrary choice among ties.

    Args:
        num_active: The number :math:`J_l` of nodes per map.
        ties: ``"keep"`` or ``"strict"``, see above.
        tolerance: Values that differ by at most this fraction of the map's largest magnitude are tied.

    Raises:
        ValueError: If an argument is out of range.

    Shape:
        ``z`` (batch, maps, nodes), ``omega`` (batch, 1, nodes) -> ``active`` (batch, maps, nodes).

    Example:
        >>> import torch
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
        check_ties(ties)
        if not 0 <= tolerance < 1:
            raise ValueError(f"tolerance is a fraction of the map's largest magnitude, in [0, 1), got {tolerance}")
        self.num_active, self.ties, self.tolerance = num_active, ties, tolerance

    def forward(
        self, z: Float[Tensor, "batch maps nodes"], omega: Bool[Tensor, "batch 1 nodes"] | None = None
    ) -> Bool[Tensor, "batch maps nodes"]:
        """Select the active nodes.

        Args:
            z: Maps.
            omega: Nodes of interest. None for all nodes.

        Returns:
            The mask of active nodes.

        Raises:
            ValueError: If ``z`` is not (batch, maps, nodes).
        """
        if z.ndim != 3:
            raise ValueError(f"{self!r} reads maps (batch, maps, nodes), got shape {tuple(z.shape)}")
        return pooling(z, omega, self.num_active, self.ties == "strict", self.tolerance)

    def extra_repr(self) -> str:
        """Describe the layer."""
        return f"{self.num_active}, ties={self.ties!r}"


def check_ties(ties: str) -> None:
    """Check the name of a rule for ties.

    Args:
        ties: ``"keep"`` or ``"strict"``.

    Raises:
        ValueError: If it is neither.
    """
    if ties not in ("keep", "strict"):
        raise ValueError(f"ties is 'keep' or 'strict', got {ties!r}")
