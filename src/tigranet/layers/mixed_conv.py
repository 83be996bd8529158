"""Fully-mixed spectral convolution: a filter for each pair of maps, normalised and rectified."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.standardise import Standardise
from tigranet.ops import fused_chebyshev, fused_chebyshev_sum, fused_mixed
from tigranet.polynomials import chebyshev, chebyshev_sum


class MixedConv(nn.Module):
    r"""A spectral convolution in which every pair of maps has a filter of its own,

    .. math::
        z_i = \mathrm{ReLU}\Bigl(b_i + \mathrm{standardised}
        \sum_{k=1}^{K_{l-1}} \sum_{m=0}^{M} \alpha_{i,k,m}\, T_m(L - I)\, y_k\Bigr) .

    The paper's layer (:class:`SpectralConv`) shares one :math:`\beta_k` among its filters, and has no nonlinearity
    but the pooling; this one stands in networks without pooling. Chebyshev polynomials span the same filters as
    powers do, and are far better conditioned. Each map is standardised over the batch and its nodes
    (:class:`Standardise`); how large a filter is is then of no account, and the bias :math:`b_i` is all it needs.

    Mixing commutes with filtering. With fewer maps in than out the polynomials are applied first, to ``in_maps``;
    otherwise the maps are mixed first and the polynomials summed by Clenshaw's recurrence, on ``out_maps``.

    Mixing is a matrix product, which promises no order of addition: the answer turns with the image, but for
    rounding, not bit for bit.

    Shapes: ``y`` (batch, in_maps, nodes), ``omega`` (batch, 1, nodes) -> (batch, out_maps, nodes).

    >>> from tigranet import GridLaplacian
    >>> conv = MixedConv(1, 10, degree=3)
    >>> conv(torch.rand(2, 1, 20), GridLaplacian(4, 5)).shape
    torch.Size([2, 10, 20])
    """

    def __init__(self, in_maps: int, out_maps: int, degree: int) -> None:
        super().__init__()
        if in_maps < 1 or out_maps < 1 or degree < 0:
            came = f"got {in_maps} to {out_maps} of degree {degree}"
            raise ValueError(f"wanted at least 1 map to at least 1 map, of degree at least 0, {came}")
        self.in_maps, self.out_maps, self.degree = in_maps, out_maps, degree
        self.alpha = nn.Parameter(torch.empty(out_maps, in_maps, degree + 1))
        self.bias = nn.Parameter(torch.empty(out_maps, 1))
        self.standardise = Standardise(out_maps, eps=1e-5)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start as PyTorch's linear layers do, with no bias."""
        bound = (self.in_maps * (self.degree + 1)) ** -0.5
        nn.init.uniform_(self.alpha, -bound, bound)
        nn.init.zeros_(self.bias)

    def forward(
        self,
        y: Float[Tensor, "batch in_maps nodes"],
        laplacian: Laplacian,
        omega: Bool[Tensor, "batch 1 nodes"] | None = None,
    ) -> Float[Tensor, "batch out_maps nodes"]:
        if y.ndim != 3 or y.shape[1] != self.in_maps:
            raise ValueError(f"{self!r} reads signals (batch, {self.in_maps}, nodes), got shape {tuple(y.shape)}")
        z = self.standardise.rectified(self.filtered(y, laplacian), self.bias)
        return z if omega is None else z * omega

    def filtered(
        self, y: Float[Tensor, "batch in_maps nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch out_maps nodes"]:
        """The double sum alone."""
        if self.in_maps < self.out_maps:
            return mix(self.alpha.transpose(1, 2).flatten(1), basis(y, laplacian, self.degree))
        return mixed(self.alpha.permute(2, 0, 1).flatten(0, 1), y, laplacian, self.degree)

    def extra_repr(self) -> str:
        return f"{self.in_maps}, {self.out_maps}, degree={self.degree}"


@fused_chebyshev
def basis(y: Float[Tensor, "batch maps nodes"], laplacian: Laplacian, degree: int) -> Float[Tensor, "batch all nodes"]:
    """All :math:`T_0 y`, then all :math:`T_1 y`, and so on."""
    return torch.cat(list(chebyshev(y, laplacian, degree)), dim=1)


@fused_chebyshev_sum
def summed(u: Float[Tensor, "batch all nodes"], laplacian: Laplacian, degree: int) -> Float[Tensor, "batch maps nodes"]:
    """The sum of :math:`T_m u_m`; ``u`` is all :math:`u_0`, then all :math:`u_1`, and so on."""
    return chebyshev_sum(u.chunk(degree + 1, dim=1), laplacian)


@fused_mixed
def mixed(
    weights: Float[Tensor, "all in_maps"], y: Float[Tensor, "batch in_maps nodes"], laplacian: Laplacian, degree: int
) -> Float[Tensor, "batch maps nodes"]:
    """Mixtures of the maps, all :math:`u_0`, then all :math:`u_1`, and so on; of these the sum of :math:`T_m u_m`."""
    return summed(mix(weights, y), laplacian, degree)


def mix(
    weights: Float[Tensor, "out_maps in_maps"], y: Float[Tensor, "batch in_maps nodes"]
) -> Float[Tensor, "batch out_maps nodes"]:
    """Linear combinations of maps, at each node alike. Under autocast a matrix product answers in half precision, in
    which no Laplacian reads."""
    return torch.bmm(weights.expand(len(y), -1, -1), y).to(y.dtype)  # matmul would copy y
