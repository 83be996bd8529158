"""Coarsening by clusters of nodes: each cluster becomes one node."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tigranet.graphs.coarsening import Coarsening
from tigranet.graphs.device_constant import DeviceConstant
from tigranet.graphs.laplacian import Laplacian
from tigranet.graphs.signal_check import check_node_set, check_signal
from tigranet.graphs.sparse_matrix import coo_matrix, multiply_last_axis


class ClusterCoarsening(Coarsening):
    r"""Smooth a signal once, then take the mean over each cluster.

    .. math:: y' = P\, \tfrac12 (I + D^{-1} A)\, y, \qquad P_{ci} = \frac{[i \in c]}{|c|}

    The smoothing replaces a value by the mean of itself and of the average of its neighbours. It suppresses
    oscillations between neighbours, which the coarse graph cannot represent and which the mean over clusters alone
    turns into slow signals: on a grid of 16 x 16 pixels, fast signals (the upper half of the frequencies) keep 4 % of
    their energy per node as slow signals of the coarse graph without smoothing, and 0.6 % with it. On a path of pairs,
    both steps together are the filter (1, 3, 3, 1) / 8 with stride 2.

    All rows of the matrix have sum 1, so a constant signal keeps its value. The signal :math:`D^{1/2} 1`, on which
    the normalized Laplacian is zero, becomes the means of the smoothed :math:`\sqrt{d_i}`. On the coarse graph the
    Laplacian of these is in general not zero, except if both graphs are regular. All nodes of a cluster have the same
    weight, whatever their degrees, as pixels have.

    Args:
        adjacency: Sparse matrix of the edge weights of the fine graph, in float64 on the CPU.
        cluster: The cluster of each node, numbered from 0. Every cluster has a node.
        laplacian: The Laplacian of the coarse graph, whose nodes are the clusters.

    Attributes:
        cluster: The cluster of each node.
        laplacian: The Laplacian of the coarse graph.

    Example:
        >>> from tigranet import SparseLaplacian
        >>> path = SparseLaplacian([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
        >>> path.coarsening
        ClusterCoarsening(4 -> 2 nodes)
        >>> path.coarsening(torch.tensor([0.0, 0.0, 8.0, 8.0]))
        tensor([1., 7.])
        >>> path.coarsening.nodes(torch.tensor([False, False, False, True]))
        tensor([False,  True])
    """

    def __init__(
        self, adjacency: Float[Tensor, "nodes nodes"], cluster: Int[Tensor, " nodes"], laplacian: Laplacian
    ) -> None:
        self.cluster = cluster
        self.laplacian = laplacian
        (row, column), weight = adjacency.indices(), adjacency.values()
        degree = torch.zeros(len(cluster), dtype=weight.dtype).index_add(0, row, weight)
        share = 1 / torch.bincount(cluster)[cluster].double()
        shape = (laplacian.num_nodes, len(cluster))
        mean = coo_matrix(torch.stack((cluster, torch.arange(len(cluster)))), share, shape)
        mean_of_neighbours = coo_matrix(torch.stack((cluster[row], column)), share[row] * weight / degree[row], shape)
        self._mean = DeviceConstant(mean)
        self._smoothed_mean = DeviceConstant(((mean + mean_of_neighbours) / 2).coalesce())

    def __call__(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch coarse_nodes"]:
        """Smooth and reduce signals, see :meth:`Coarsening.__call__`."""
        check_signal(y, len(self.cluster), self)
        return multiply_last_axis(self._smoothed_mean.like(y), y)

    def nodes(self, omega: Bool[Tensor, "*batch nodes"]) -> Bool[Tensor, "*batch coarse_nodes"]:
        """Reduce sets of nodes, see :meth:`Coarsening.nodes`."""
        check_node_set(omega, len(self.cluster), self)
        indicator = omega.float()
        return multiply_last_axis(self._mean.like(indicator), indicator) > 0

    def __repr__(self) -> str:
        return f"ClusterCoarsening({len(self.cluster)} -> {self.laplacian.num_nodes} nodes)"


def contract(adjacency: Float[Tensor, "nodes nodes"], cluster: Int[Tensor, " nodes"]) -> Float[Tensor, "coarse coarse"]:
    r"""Merge each cluster of nodes into one node.

    The weight between two clusters is the sum of the weights between their nodes. Edges inside a cluster are dropped.
    With the indicator matrix :math:`Q_{ci} = [i \in c]`, this is :math:`Q A Q^T` with a zero diagonal.

    Args:
        adjacency: Symmetric sparse matrix of edge weights in coordinate format, in float64 on the CPU.
        cluster: The cluster of each node, numbered from 0.

    Returns:
        The sparse matrix of edge weights of the coarse graph. It is symmetric to the last bit.
    """
    num_clusters = int(cluster.max()) + 1
    edges, weight = cluster[adjacency.indices()], adjacency.values()
    is_upper = edges[0] < edges[1]
    upper = coo_matrix(edges[:, is_upper], weight[is_upper], (num_clusters, num_clusters))
    return (upper + upper.transpose(0, 1)).coalesce()
