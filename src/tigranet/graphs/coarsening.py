"""One step from a graph to a smaller graph, for signals, for sets of nodes and for the Laplacian."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from jaxtyping import Bool, Float
from torch import Tensor

if TYPE_CHECKING:
    from tigranet.graphs.laplacian import Laplacian


class Coarsening(ABC):
    """One step from a graph to a graph of about half as many nodes (pixel grid: half the height and width).

    A graph has one coarsening, :attr:`tigranet.graphs.Laplacian.coarsening`. To coarsen further, use the coarsening of
    the coarse graph, ``coarsening.laplacian.coarsening``.

    Attributes:
        laplacian: The Laplacian of the coarse graph.
    """

    laplacian: "Laplacian"

    @abstractmethod
    def __call__(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch coarse_nodes"]:
        """Low-pass filter and reduce signals. Constant signals keep their value.

        Args:
            y: Signals on the fine graph.

        Returns:
            Signals on the coarse graph, on the device and in the dtype of ``y``. The result is differentiable.

        Raises:
            ValueError: If the last axis of ``y`` does not have one value per node of the fine graph.
            TypeError: If ``y`` is neither float32 nor float64.

        Shape:
            ``(*batch, nodes) -> (*batch, coarse_nodes)``
        """

    @abstractmethod
    def nodes(self, omega: Bool[Tensor, "*batch nodes"]) -> Bool[Tensor, "*batch coarse_nodes"]:
        """Reduce sets of nodes. A coarse node is in the set if at least one of its fine nodes is.

        Args:
            omega: Sets of nodes of the fine graph, true for the nodes of the set.

        Returns:
            Sets of nodes of the coarse graph, on the device of ``omega``.

        Raises:
            ValueError: If the last axis of ``omega`` does not have one value per node of the fine graph.

        Shape:
            ``(*batch, nodes) -> (*batch, coarse_nodes)``
        """
