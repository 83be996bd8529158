"""Products of gradients on any graph."""

from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.product_layer import ProductLayer


class GradientProduct(ProductLayer):
    r"""The product of gradients that needs no coordinates, :math:`\nabla f \cdot \nabla g` of two mixtures of maps.

    It is the carré du champ of the Laplacian (:meth:`Laplacian.carre_du_champ`). It exists on every graph, and is
    equivariant under every symmetry of the graph, including reflections.

    See :class:`ProductLayer` for the arguments and shapes.

    Example:
        >>> import torch
        >>> from tigranet import SparseLaplacian
        >>> ring = SparseLaplacian.from_edges(torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]))
        >>> GradientProduct(32, pairs=16)(torch.rand(2, 32, 3), ring).shape
        torch.Size([2, 48, 3])
    """

    KINDS = 1

    def products(
        self, mixtures: Float[Tensor, "batch mixtures nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch pairs nodes"]:
        r"""Compute :math:`\nabla f \cdot \nabla g`.

        Args:
            mixtures: All f, then all g.
            laplacian: The graph.

        Returns:
            One product per pair.
        """
        return laplacian.carre_du_champ(*mixtures.chunk(2, dim=1))
