"""Coarsening as a layer."""

from jaxtyping import Float
from torch import Tensor, nn

from tigranet.graphs.laplacian import Laplacian
from tigranet.ops import coarsen


class Coarsen(nn.Module):
    """Move signals to the coarse version of their graph: on the pixel grid, to half the height and width.

    The layer learns nothing. The next layers work on ``laplacian.coarsening.laplacian``.

    Shape:
        ``y`` (batch, maps, nodes) -> (batch, maps, coarse nodes).

    Example:
        >>> import torch
        >>> from tigranet import GridLaplacian
        >>> Coarsen()(torch.rand(2, 3, 8 * 7), GridLaplacian(8, 7)).shape
        torch.Size([2, 3, 16])
    """

    def forward(
        self, y: Float[Tensor, "batch maps nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch maps coarse_nodes"]:
        """Coarsen signals.

        Args:
            y: Signals on the graph.
            laplacian: The graph.

        Returns:
            Signals on the coarse graph.

        Raises:
            ValueError: If the graph is too small.
            TypeError: If this kind of graph cannot be coarsened.
        """
        return coarsen(y, laplacian)
