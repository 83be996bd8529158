"""The statistical layer: features that do not change when the image is rotated or shifted (Sec. 4.3)."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.graphs.laplacian import Laplacian
from tigranet.ops import statistics


class Statistics(nn.Module):
    r"""The statistical layer of the paper: mean and variance of the magnitude of Chebyshev polynomials over the nodes.

    With :math:`t_{i,k} = T_k(L - I)\, \tilde z_i` for k = 0 .. ``order``, it computes for each map

    .. math:: \phi_i = [\mu_{i,0}, \sigma^2_{i,0}, \dots, \mu_{i,K}, \sigma^2_{i,K}], \quad
        \mu_{i,k} = \tfrac1N \sum_n |t_{i,k}(n)|, \quad
        \sigma^2_{i,k} = \tfrac1N \sum_n \left(|t_{i,k}(n)| - \mu_{i,k}\right)^2 .

    Readings: :math:`\tilde z_i` is :math:`z_i` set to zero outside its own active nodes before the recursion; mean and
    variance run over all N nodes, both with 1/N (6). The exact gradient of that variance is
    :math:`\tfrac2N (|t| - \mu)\,\mathrm{sign}(t)`, and the paper's Eq. der_stat2 is its diagonal term (7). The gradient
    of \|t\| at 0 is 0, and a t that is zero in exact arithmetic counts as 0, because its sign is rounding noise (8).

    Args:
        order: The highest order K.

    Raises:
        ValueError: If ``order`` is negative.

    Shape:
        ``z`` and ``active`` (batch, maps, nodes) -> (batch, maps * 2 * (order + 1)), map after map.

    Example:
        >>> import torch
        >>> from tigranet import GridLaplacian
        >>> Statistics(12)(torch.rand(2, 20, 30), GridLaplacian(5, 6)).shape
        torch.Size([2, 520])
    """

    ROUNDING = 256
    """Magnitudes below this many units of rounding of the map's largest count as zero."""

    def __init__(self, order: int) -> None:
        super().__init__()
        if order < 0:
            raise ValueError(f"order is at least 0, got {order}")
        self.order = order

    def forward(
        self,
        z: Float[Tensor, "batch maps nodes"],
        laplacian: Laplacian,
        active: Bool[Tensor, "batch maps nodes"] | None = None,
    ) -> Float[Tensor, "batch statistics"]:
        """Compute the statistics.

        Args:
            z: Maps.
            laplacian: The graph.
            active: Active nodes of each map. None for all nodes.

        Returns:
            The statistics, map after map, order after order, mean and variance.

        Raises:
            ValueError: If ``z`` is not (batch, maps, nodes), or ``active`` has a different shape.
        """
        if z.ndim != 3 or (active is not None and active.shape != z.shape):
            shapes = f"{tuple(z.shape)}" + ("" if active is None else f" with active nodes {tuple(active.shape)}")
            raise ValueError(f"{self!r} reads maps (batch, maps, nodes), got shape {shapes}")
        return statistics(z, active, self.order, self.ROUNDING, laplacian)

    def extra_repr(self) -> str:
        """Describe the layer."""
        return f"{self.order}"
