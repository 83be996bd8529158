"""Products of learned mixtures of maps: what the layers of products have in common."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from numpy.polynomial.chebyshev import chebpow
from torch import Tensor, nn

from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.mixed_conv import mix, mixed
from tigranet.layers.standardise import Standardise


class Products(nn.Module, ABC):
    r"""Two learned mixtures of the maps, :math:`f_p = \sum_k A_{p,k} y_k` and :math:`g_p = \sum_k B_{p,k} y_k` for
    p = 1 .. ``pairs``, each smoothed by :math:`(I - \tau L)^s`, with s = ``smoothings``; some products of the two,
    which a layer of this kind says; each standardised over the batch and its nodes, to x; where it is large, its root
    taken,

    .. math:: x \mapsto x / \sqrt{1 + |x| / 8},

    and set behind the maps themselves. A product grows as the square of the contrast, so layer upon layer would raise
    an image of half as much contrast again to numbers never seen; its root grows as the contrast does.

    Details too fine for a stencil look otherwise along the axes than along the diagonals, and a network that learns
    from upright images learns to use that. Smoothing takes it away.

    Shapes: ``y`` (batch, in_maps, nodes), ``omega`` (batch, 1, nodes) -> (batch, out_maps, nodes).
    """

    KINDS: int
    """How many products a pair has."""
    LARGE = 8
    """Standard deviations beyond which a product is large. With 1, digits were told better upright and worse turned."""
    TAU = 0.7
    """How far a smoothing goes. On the isotropic grid it leaves -0.08 to 0.14 of waves of 2 pixels, which no stencil
    sees alike in all directions, 0.57 of waves of 4 and 0.87 of waves of 8."""

    def __init__(self, in_maps: int, pairs: int, smoothings: int = 0) -> None:
        super().__init__()
        if in_maps < 1 or pairs < 1 or smoothings < 0:
            came = f"got {in_maps}, {pairs} and {smoothings}"
            raise ValueError(f"wanted at least 1 map and 1 pair of mixtures, smoothed 0 times or more, {came}")
        self.in_maps, self.pairs, self.out_maps = in_maps, pairs, in_maps + self.KINDS * pairs
        self.smoothings = smoothings
        self.response = tuple(map(float, chebpow([1 - self.TAU, -self.TAU], smoothings)))
        self.mixtures = nn.Parameter(torch.empty(2 * pairs, in_maps))
        self.standardise = Standardise(self.KINDS * pairs, eps=1e-5)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start as PyTorch's linear layers do."""
        nn.init.uniform_(self.mixtures, -(self.in_maps**-0.5), self.in_maps**-0.5)

    @abstractmethod
    def products(
        self, mixtures: Float[Tensor, "batch mixtures nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch products nodes"]:
        """The products of f and g, which come one after the other; kind after kind."""

    def forward(
        self,
        y: Float[Tensor, "batch in_maps nodes"],
        laplacian: Laplacian,
        omega: Bool[Tensor, "batch 1 nodes"] | None = None,
    ) -> Float[Tensor, "batch out_maps nodes"]:
        if y.ndim != 3 or y.shape[1] != self.in_maps:
            raise ValueError(f"{self!r} reads signals (batch, {self.in_maps}, nodes), got shape {tuple(y.shape)}")
        products = self.products(self.smooth_mixtures(y, laplacian), laplacian)
        z = self.standardise.rooted(products, self.LARGE, behind=y)
        return z if omega is None else z * omega

    def smooth_mixtures(
        self, y: Float[Tensor, "batch in_maps nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch mixtures nodes"]:
        r"""All f, then all g. As :math:`I - \tau L = (1 - \tau) T_0 - \tau T_1`, in the polynomials of L - I that
        convolutions are made of, both steps are one convolution."""
        if not self.smoothings:
            return mix(self.mixtures, y)
        return mixed(torch.cat([c * self.mixtures for c in self.response]), y, laplacian, self.smoothings)

    def extra_repr(self) -> str:
        return f"{self.in_maps}, pairs={self.pairs}" + f", smoothings={self.smoothings}" * bool(self.smoothings)
