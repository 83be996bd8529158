"""The statistical layer: what does not change when the image is turned or shifted (Sec. 4.3)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.graphs.laplacian import Laplacian
from tigranet.ops import fused_statistics
from tigranet.polynomials import chebyshev


class Statistics(nn.Module):
    r"""The statistical layer of the paper: mean and variance over the nodes of the magnitude of
    :math:`t_{i,k} = T_k(L - I)\, \tilde z_i` for k = 0 .. ``order``,

    .. math:: \phi_i = [\mu_{i,0}, \sigma^2_{i,0}, \dots, \mu_{i,K}, \sigma^2_{i,K}], \quad
        \mu_{i,k} = \tfrac1N \sum_n |t_{i,k}(n)|, \quad
        \sigma^2_{i,k} = \tfrac1N \sum_n \left(|t_{i,k}(n)| - \mu_{i,k}\right)^2 .

    Readings: :math:`\tilde z_i` is :math:`z_i` set to zero outside its own active nodes before the recursion; mean and
    variance run over all N nodes, both with 1/N (6). The exact gradient of that variance is
    :math:`\tfrac2N (|t| - \mu)\,\mathrm{sign}(t)`, of which the paper's Eq. der_stat2 is the diagonal term (7). The
    gradient of \|t\| at 0 is 0, and a t that is zero but for rounding counts as 0, or its sign would be noise (8).

    Shapes: ``z`` and ``active`` (batch, maps, nodes) -> (batch, maps * 2 * (order + 1)), map after map.

    >>> from tigranet import GridLaplacian
    >>> Statistics(12)(torch.rand(2, 20, 30), GridLaplacian(5, 6)).shape
    torch.Size([2, 520])
    """

    ROUNDING = 256  # magnitudes below this many units of rounding of the map's largest are zero but for rounding

    def __init__(self, order: int) -> None:
        super().__init__()
        if order < 0:
            raise ValueError(f"order is at least 0, got {order}")
        self.order = order

    @fused_statistics
    def forward(
        self,
        z: Float[Tensor, "batch maps nodes"],
        laplacian: Laplacian,
        active: Bool[Tensor, "batch maps nodes"] | None = None,
    ) -> Float[Tensor, "batch statistics"]:
        if z.ndim != 3 or (active is not None and active.shape != z.shape):
            shapes = f"{tuple(z.shape)}" + ("" if active is None else f" with active nodes {tuple(active.shape)}")
            raise ValueError(f"{self!r} reads maps (batch, maps, nodes), got shape {shapes}")
        z = z if active is None else z * active  # a product, not a choice: a NaN is not hidden
        if not len(z):  # PyTorch would warn of a variance of nothing
            return z.new_zeros(0, z.shape[1] * 2 * (self.order + 1))
        noise = self.ROUNDING * torch.finfo(z.dtype).eps * z.detach().abs().amax(-1, keepdim=True)
        phi = []
        for t in chebyshev(z, laplacian, self.order):
            magnitude = torch.where(t.abs() > noise, t, t.detach()).abs()
            sigma2, mu = torch.var_mean(magnitude, dim=-1, correction=0)
            phi += [mu, sigma2]
        return torch.stack(phi, dim=-1).flatten(1)

    def extra_repr(self) -> str:
        return f"{self.order}"
