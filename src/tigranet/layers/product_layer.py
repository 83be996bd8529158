"""The base class of layers that multiply learned mixtures of maps."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from numpy.polynomial.chebyshev import chebpow
from torch import Tensor, nn

from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.standardise import Standardise
from tigranet.ops import mix, mixed_chebyshev_sum


class ProductLayer(nn.Module, ABC):
    r"""Products of pairs of learned mixtures of the maps, appended to the maps themselves.

    The mixtures are :math:`f_p = \sum_k A_{p,k} y_k` and :math:`g_p = \sum_k B_{p,k} y_k` for p = 1 .. ``pairs``. Each
    is smoothed by :math:`(I - \tau L)^s` with s = ``smoothings``. A subclass defines the products of f and g. Each
    product is standardised over the batch and its nodes, to x, and large values are compressed:

    .. math:: x \mapsto x / \sqrt{1 + |x| / 8} .

    A product grows as the square of the contrast, so in a deep network an image with half as much contrast again would
    lead to numbers far outside the range of the training data. Its square root grows as the contrast does.

    Details that are too fine for a stencil look different along the axes than along the diagonals, and a network that
    is trained on upright images learns to use that difference. Smoothing removes it.

    Args:
        in_maps: The number of input maps.
        pairs: The number of pairs (f, g).
        smoothings: How often the mixtures are smoothed.

    Raises:
        ValueError: If a number is too small.

    Shape:
        ``y`` (batch, in_maps, nodes), ``omega`` (batch, 1, nodes) -> (batch, out_maps, nodes), where ``out_maps`` is
        ``in_maps + KINDS * pairs``.
    """

    KINDS: int
    """The number of products per pair."""
    LARGE = 8
    """Standard deviations beyond which a product is large. With 1, the accuracy on digits was higher for upright and
    lower for rotated images."""
    TAU = 0.7
    """Strength of a smoothing. On the isotropic grid it multiplies waves of 2 pixels, which a stencil sees differently
    in different directions, by -0.08 to 0.14, waves of 4 pixels by 0.57 and waves of 8 pixels by 0.87."""

    def __init__(self, in_maps: int, pairs: int, smoothings: int = 0) -> None:
        super().__init__()
        if in_maps < 1 or pairs < 1 or smoothings < 0:
            raise ValueError(
                "expected at least 1 map and 1 pair of mixtures, smoothed 0 times or more, "
                f"got {in_maps}, {pairs} and {smoothings}"
            )
        self.in_maps, self.pairs, self.out_maps = in_maps, pairs, in_maps + self.KINDS * pairs
        self.smoothings = smoothings
        self.response = tuple(map(float, chebpow([1 - self.TAU, -self.TAU], smoothings)))
        self.mixtures = nn.Parameter(torch.empty(2 * pairs, in_maps))
        self.standardise = Standardise(self.KINDS * pairs, eps=1e-5)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the mixtures like PyTorch's linear layers."""
        nn.init.uniform_(self.mixtures, -(self.in_maps**-0.5), self.in_maps**-0.5)

    @abstractmethod
    def products(
        self, mixtures: Float[Tensor, "batch mixtures nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch products nodes"]:
        """Compute the products of f and g.

        Args:
            mixtures: All f, then all g.
            laplacian: The graph.

        Returns:
            One map per pair and kind of product, kind after kind.
        """

    def forward(
        self,
        y: Float[Tensor, "batch in_maps nodes"],
        laplacian: Laplacian,
        omega: Bool[Tensor, "batch 1 nodes"] | None = None,
    ) -> Float[Tensor, "batch out_maps nodes"]:
        """Append products to maps.

        Args:
            y: Maps.
            laplacian: The graph.
            omega: Nodes of interest; the result is zero elsewhere. None for all nodes.

        Returns:
            The maps ``y``, followed by the standardised and compressed products.

        Raises:
            ValueError: If ``y`` is not (batch, in_maps, nodes).
        """
        if y.ndim != 3 or y.shape[1] != self.in_maps:
            raise ValueError(f"{self!r} reads signals (batch, {self.in_maps}, nodes), got shape {tuple(y.shape)}")
        products = self.products(self.smooth_mixtures(y, laplacian), laplacian)
        z = self.standardise.compressed(products, self.LARGE, after=y)
        return z if omega is None else z * omega

    def smooth_mixtures(
        self, y: Float[Tensor, "batch in_maps nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch mixtures nodes"]:
        r"""Mix and smooth maps.

        As :math:`I - \tau L = (1 - \tau) T_0 - \tau T_1` in the polynomials of L - I that convolutions are made of,
        both steps are one convolution.

        Args:
            y: Maps.
            laplacian: The graph.

        Returns:
            All f, then all g.
        """
        if not self.smoothings:
            return mix(self.mixtures, y)
        weights = torch.cat([coefficient * self.mixtures for coefficient in self.response])
        return mixed_chebyshev_sum(weights, y, laplacian, self.smoothings)

    def extra_repr(self) -> str:
        """Describe the layer."""
        return f"{self.in_maps}, pairs={self.pairs}" + f", smoothings={self.smoothings}" * bool(self.smoothings)
