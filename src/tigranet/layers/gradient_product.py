"""Products of gradients on any graph."""

from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.products import Products


class GradientProduct(Products):
    r"""The one product of gradients that needs no coordinates, :math:`\nabla f \cdot \nabla g` of two mixtures of maps,
    as the carré du champ of the Laplacian (:meth:`Laplacian.carre_du_champ`): it exists on every graph, and every
    symmetry of the graph is one of its own, reflections too.

    >>> import torch
    >>> from tigranet import SparseLaplacian
    >>> ring = SparseLaplacian.from_edges(torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]))
    >>> GradientProduct(32, pairs=16)(torch.rand(2, 32, 3), ring).shape
    torch.Size([2, 48, 3])
    """

    KINDS = 1

    def products(
        self, f: Float[Tensor, "batch pairs nodes"], g: Float[Tensor, "batch pairs nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch products nodes"]:
        return laplacian.carre_du_champ(f, g)
