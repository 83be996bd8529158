"""Spectral convolution: filters that are polynomials of the Laplacian (Sec. 4.1)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.filter_bank import filter_bank
from tigranet.ops import convolution


class SpectralConv(nn.Module):
    r"""The spectral convolutional layer of the paper (Eqs. pol_filt_1, pol_filt_2, lincomb).

    .. math::
        z_i = \sum_{k=1}^{K_{l-1}} \beta_k \left[F_i|_\Omega\right]^T y_k,
        \qquad F_i = \sum_{m=0}^{M} \alpha_{i,m} L^m .

    Readings: :math:`\alpha` has M + 1 coefficients per filter (4). :math:`\beta` has no index i, so the filters share
    it, and mixing the maps first and filtering the one mixed signal is the same thing, :math:`K_{l-1}` times cheaper
    (5). Keeping the columns of F in :math:`\Omega` and transposing restricts the *output* to :math:`\Omega`; the input
    is read everywhere (2, 3).

    The filters are initialised with a bank of windows over [0, ``span``] (:func:`filter_bank`), and :math:`\beta`
    uniformly in [0, 1], as in the paper.

    Args:
        in_maps: The number of input maps.
        out_maps: The number of output maps.
        degree: The degree M of the polynomials.
        span: The end of the interval of the spectrum that the initial filters cover.

    Raises:
        ValueError: If a number is out of range.

    Shape:
        ``y`` (batch, in_maps, nodes), ``omega`` (batch, 1, nodes) -> (batch, out_maps, nodes).

    Example:
        >>> from tigranet import GridLaplacian
        >>> conv = SpectralConv(1, 10, degree=4)
        >>> conv(torch.rand(2, 1, 20), GridLaplacian(4, 5)).shape
        torch.Size([2, 10, 20])
    """

    def __init__(self, in_maps: int, out_maps: int, degree: int, span: float = 2.0) -> None:
        super().__init__()
        if in_maps < 1:
            raise ValueError(f"in_maps is at least 1, got {in_maps}")
        self.in_maps, self.out_maps, self.degree, self.span = in_maps, out_maps, degree, span
        self.alpha = nn.Parameter(torch.empty(out_maps, degree + 1))
        self.beta = nn.Parameter(torch.empty(in_maps))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters as in the paper."""
        if self.alpha.is_meta:  # A network that is built for its shapes alone has no values to compute.
            return
        with torch.no_grad():
            self.alpha.copy_(filter_bank(self.out_maps, self.degree, self.span))
            self.beta.uniform_(0, 1)

    def forward(
        self,
        y: Float[Tensor, "batch in_maps nodes"],
        laplacian: Laplacian,
        omega: Bool[Tensor, "batch 1 nodes"] | None = None,
    ) -> Float[Tensor, "batch out_maps nodes"]:
        """Filter maps.

        Args:
            y: Maps.
            laplacian: The graph.
            omega: Nodes of interest; the result is zero elsewhere. None for all nodes.

        Returns:
            The filtered maps.

        Raises:
            ValueError: If ``y`` is not (batch, in_maps, nodes).
        """
        if y.ndim != 3 or y.shape[1] != self.in_maps:
            raise ValueError(f"{self!r} reads signals (batch, {self.in_maps}, nodes), got shape {tuple(y.shape)}")
        return convolution(y, self.alpha, self.beta, omega, laplacian)

    def extra_repr(self) -> str:
        """Describe the layer."""
        return f"{self.in_maps}, {self.out_maps}, degree={self.degree}"
