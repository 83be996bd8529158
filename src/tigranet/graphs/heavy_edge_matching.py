"""Clusters of neighbouring nodes by heavy-edge matching, the first step of graph coarsening."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

SCORE_BITS = 40
"""Number of bits to which scores are rounded, so that scores that differ by rounding errors only are equal."""


def heavy_edge_matching(adjacency: Float[Tensor, "nodes nodes"]) -> Int[Tensor, " nodes"]:
    r"""Group the nodes of a graph into clusters of about two strongly connected neighbours.

    The score of an edge is the normalized cut of Graclus (Dhillon, Guan and Kulis, 2007), which Defferrard, Bresson
    and Vandergheynst (2016) use for pooling on graphs:

    .. math:: s_{ij} = a_{ij} \left(\frac 1 {d_i} + \frac 1 {d_j}\right) .

    1. *Match*: the edges are visited once, from the highest score to the lowest. An edge whose two nodes are both
       free makes them a pair. This greedy matching has at least half the score of the best matching.
    2. *Join*: no edge joins two nodes that are still free, so all neighbours of a free node belong to pairs. The node
       joins the pair to which its edge of highest score leads. Clusters of three or more nodes therefore replace
       clusters of one node. A hub with many neighbours of degree one takes them all into its cluster.
    3. *Split*: a connected component that has become a single cluster would be an isolated node of the coarse graph.
       The node that was added to the cluster last becomes a cluster of its own. A component of two nodes is therefore
       not merged.

    Consequences:

    * Every cluster is connected: a pair, and nodes that have an edge to the pair. Two of its nodes are at most three
      edges apart.
    * A component of n nodes has at least 2 clusters, and at most max(2, n / 2). If n is 3 or more, this is at most
      2 n / 3. Only components of two nodes keep their number of nodes.
    * A connected graph stays connected if each cluster becomes a node, because a path of nodes is also a path of
      clusters. With at least two clusters per component, no cluster is isolated.

    The clusters do not depend on the order in which edges are listed. Edges of equal score are visited in the order of
    their node numbers. If all scores are different, the clusters are the same for every numbering of the nodes. If
    some are equal, they depend on the numbering: on a ring of equal weights, no matching into pairs is mapped to
    itself by a rotation by one node. A symmetry of the graph is therefore in general not a symmetry of the clusters,
    and statistics of a signal on the coarse graph change by a few percent with the numbering.

    Args:
        adjacency: Symmetric sparse matrix of edge weights in coordinate format, in float64 on the CPU. Its diagonal is
            zero and every node has an edge.

    Returns:
        The cluster of each node. Clusters are numbered from 0 in the order of their smallest node.

    Example:
        >>> path = torch.tensor([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0.0]], dtype=torch.float64)
        >>> heavy_edge_matching(path.to_sparse())
        tensor([0, 0, 1, 1])
    """
    num_nodes = adjacency.shape[0]
    edges, score = _scored_edges(adjacency)
    # The entries are sorted by node numbers, and a stable sort keeps this order among equal scores.
    first, second = edges[:, np.argsort(-score, kind="stable")]
    leader, is_free = _match(first, second, num_nodes)
    added_at = _join(first, second, leader, is_free)
    _split(first, second, leader, added_at)
    _, smallest_node, cluster = np.unique(leader, return_index=True, return_inverse=True)
    return torch.from_numpy(np.argsort(np.argsort(smallest_node))[cluster])


def _scored_edges(adjacency: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return each edge once, as two node numbers in increasing order, and the rounded score of each edge."""
    (row, column), weight = adjacency.indices().numpy(), adjacency.values().numpy()
    degree = np.bincount(row, weight, adjacency.shape[0])
    is_upper = row < column
    row, column, weight = row[is_upper], column[is_upper], weight[is_upper]
    # The quotients are at most 1, while the reciprocal of a small degree can overflow.
    mantissa, exponent = np.frexp(weight / degree[row] + weight / degree[column])
    return np.stack((row, column)), np.ldexp(np.rint(np.ldexp(mantissa, SCORE_BITS)), exponent - SCORE_BITS)


def _match(first: np.ndarray, second: np.ndarray, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Match nodes along sorted edges. Return the first node of the pair of each node, and which nodes are free."""
    leader, is_free = list(range(num_nodes)), [True] * num_nodes
    for i, j in zip(first.tolist(), second.tolist(), strict=True):  # Python lists are faster here than arrays.
        if is_free[i] and is_free[j]:
            is_free[i] = is_free[j] = False
            leader[j] = i
    return np.array(leader), np.array(is_free)


def _join(first: np.ndarray, second: np.ndarray, leader: np.ndarray, is_free: np.ndarray) -> np.ndarray:
    """Add the free nodes to pairs, in place. Return a number per node that is larger if it was added later."""
    added_at = np.where(leader == np.arange(len(leader)), -2, -1)
    position = np.flatnonzero(is_free[first] | is_free[second])
    first_is_free = is_free[first[position]]
    node = np.where(first_is_free, first[position], second[position])
    neighbour = np.where(first_is_free, second[position], first[position])
    node, best = np.unique(node, return_index=True)
    leader[node] = leader[neighbour[best]]
    added_at[node] = position[best]
    return added_at


def _split(first: np.ndarray, second: np.ndarray, leader: np.ndarray, added_at: np.ndarray) -> None:
    """Remove the last node from every cluster that no edge leaves, in place."""
    is_isolated = np.ones(len(leader), dtype=bool)
    leaves = leader[first] != leader[second]
    is_isolated[leader[first[leaves]]] = is_isolated[leader[second[leaves]]] = False
    nodes = np.flatnonzero(is_isolated[leader])
    nodes = nodes[np.lexsort((added_at[nodes], leader[nodes]))]
    is_last = np.append(leader[nodes[1:]] != leader[nodes[:-1]], True)[: len(nodes)]
    leader[nodes[is_last]] = nodes[is_last]
