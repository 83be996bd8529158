"""Fully-mixed spectral convolution: one filter per pair of maps, then standardisation and ReLU."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.standardise import Standardise
from tigranet.ops import chebyshev_basis, mix, mixed_chebyshev_sum


class MixedConv(nn.Module):
    r"""A spectral convolution with one filter per pair of an input map and an output map.

    .. math::
        z_i = \mathrm{ReLU}\Bigl(b_i + \mathrm{standardise}
        \sum_{k=1}^{K_{l-1}} \sum_{m=0}^{M} \alpha_{i,k,m}\, T_m(L - I)\, y_k\Bigr) .

    The paper's layer (:class:`SpectralConv`) shares one :math:`\beta_k` among its filters, and its only nonlinearity
    is the pooling. This layer is for networks without pooling. Chebyshev polynomials span the same filters as powers,
    and are far better conditioned. Each map is standardised over the batch and its nodes (:class:`Standardise`), so
    that the scale of a filter does not matter, and the bias :math:`b_i` is all that it needs.

    Mixing commutes with filtering. With fewer input maps than output maps the polynomials are applied first, to
    ``in_maps`` maps. Otherwise the maps are mixed first, and the polynomials are summed by Clenshaw's recurrence, on
    ``out_maps`` maps. On a torus, a CPU mixes the Fourier coefficients of the maps instead where this is faster.

    Mixing is a matrix product, which guarantees no order of addition: the result rotates with the image up to
    rounding, not bit for bit.

    Args:
        in_maps: The number of input maps.
        out_maps: The number of output maps.
        degree: The degree M of the polynomials.

    Raises:
        ValueError: If a number is too small.

    Shape:
        ``y`` (batch, in_maps, nodes), ``omega`` (batch, 1, nodes) -> (batch, out_maps, nodes).

    Example:
        >>> from tigranet import GridLaplacian
        >>> conv = MixedConv(1, 10, degree=3)
        >>> conv(torch.rand(2, 1, 20), GridLaplacian(4, 5)).shape
        torch.Size([2, 10, 20])
    """

    def __init__(self, in_maps: int, out_maps: int, degree: int) -> None:
        super().__init__()
        if in_maps < 1 or out_maps < 1 or degree < 0:
            raise ValueError(
                "expected at least 1 map to at least 1 map, of degree at least 0, "
                f"got {in_maps} to {out_maps} of degree {degree}"
            )
        self.in_maps, self.out_maps, self.degree = in_maps, out_maps, degree
        self.alpha = nn.Parameter(torch.empty(out_maps, in_maps, degree + 1))
        self.bias = nn.Parameter(torch.empty(out_maps, 1))
        self.standardise = Standardise(out_maps, eps=1e-5)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the filters like PyTorch's linear layers, and the bias with zeros."""
        bound = (self.in_maps * (self.degree + 1)) ** -0.5
        nn.init.uniform_(self.alpha, -bound, bound)
        nn.init.zeros_(self.bias)

    def forward(
        self,
        y: Float[Tensor, "batch in_maps nodes"],
        laplacian: Laplacian,
        omega: Bool[Tensor, "batch 1 nodes"] | None = None,
    ) -> Float[Tensor, "batch out_maps nodes"]:
        """Filter, standardise and rectify maps.

        Args:
            y: Maps.
            laplacian: The graph.
            omega: Nodes of interest; the result is zero elsewhere. None for all nodes.

        Returns:
            The output maps.

        Raises:
            ValueError: If ``y`` is not (batch, in_maps, nodes).
        """
        if y.ndim != 3 or y.shape[1] != self.in_maps:
            raise ValueError(f"{self!r} reads signals (batch, {self.in_maps}, nodes), got shape {tuple(y.shape)}")
        z = self.standardise.rectified(self.filtered(y, laplacian), self.bias)
        return z if omega is None else z * omega

    def filtered(
        self, y: Float[Tensor, "batch in_maps nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch out_maps nodes"]:
        """Compute the double sum, without standardisation, bias and ReLU.

        Args:
            y: Maps.
            laplacian: The graph.

        Returns:
            The filtered maps.
        """
        if self.in_maps < self.out_maps:
            return mix(self.alpha.transpose(1, 2).flatten(1), chebyshev_basis(y, laplacian, self.degree))
        return mixed_chebyshev_sum(self.alpha.permute(2, 0, 1).flatten(0, 1), y, laplacian, self.degree)

    def extra_repr(self) -> str:
        """Describe the layer."""
        return f"{self.in_maps}, {self.out_maps}, degree={self.degree}"
