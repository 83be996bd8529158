"""Any undirected weighted graph, as a sparse matrix."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tigranet.graphs.cluster_coarsening import ClusterCoarsening, contract
from tigranet.graphs.grid import Neighbours, check_grid_options
from tigranet.graphs.heavy_edge_matching import heavy_edge_matching
from tigranet.graphs.laplacian import Laplacian
from tigranet.graphs.sparse_matrix import coo_matrix, multiply_last_axis

MAX_LISTED_ENTRIES = 3
"""Number of wrong matrix entries that an error message lists."""
MAX_LISTED_NODES = 5
"""Number of isolated nodes that an error message lists."""


class SparseLaplacian(Laplacian):
    """The normalized Laplacian of any graph, from its adjacency matrix.

    The edge weights must be symmetric, finite and non-negative. No edge may join a node to itself, and every node
    needs at least one neighbour. Use :meth:`from_edges` to build the graph from an ``edge_index``, and
    :meth:`from_mask` to build it from a part of the pixel grid.

    :attr:`coarsening` merges strongly connected neighbours, see :func:`heavy_edge_matching`. Each coarsening divides
    the number of nodes by about two, so two of them correspond to one coarsening of the pixel grid. Where edges have
    equal scores, the node numbers decide which nodes are merged. A network that coarsens a sparse graph is therefore
    in general not exactly invariant to symmetries of the graph, nor to another numbering of its nodes. Without
    coarsening it is, up to rounding. For whole images use :class:`~tigranet.graphs.GridLaplacian`.

    Args:
        adjacency: Square matrix of edge weights: a SciPy sparse matrix, anything that :func:`torch.as_tensor` reads
            (such as a NumPy array or nested lists), or a dense or sparse PyTorch tensor.

    Attributes:
        num_nodes: Number of nodes.
        num_edges: Number of undirected edges.

    Raises:
        ValueError: If the matrix breaks one of the conditions above. The message lists the first wrong entries.

    Example:
        >>> SparseLaplacian([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
        SparseLaplacian(num_nodes=3, num_edges=2)
        >>> SparseLaplacian.from_mask(torch.ones(4, 4, dtype=torch.bool)).coarsening.laplacian
        SparseLaplacian(num_nodes=8, num_edges=15)
    """

    def __init__(self, adjacency: Any) -> None:
        a = _as_coo(adjacency)
        (row, column), weight = a.indices(), a.values()
        _reject_entries(a, ~torch.isfinite(weight), "expected edge weights to be finite, got {}")
        _reject_entries(a, weight < 0, "expected edge weights to be zero or positive, got {}")
        _reject_entries(a, row == column, "expected no edge from a node to itself, got {}: set the diagonal to zero")
        asymmetry = (a - a.transpose(0, 1)).coalesce()
        _reject_entries(
            asymmetry,
            asymmetry.values().abs() > 1e-10 * weight.sum(),
            "expected a_ij = a_ji, got a_ij - a_ji of {}: give each edge in both directions with the same weight",
        )
        degree = torch.zeros(a.shape[0], dtype=weight.dtype).index_add(0, row, weight)
        if isolated_nodes := torch.nonzero(degree == 0).flatten().tolist():
            raise ValueError(
                "expected every node to have a neighbour, "
                f"got {len(isolated_nodes)} isolated, {isolated_nodes[:MAX_LISTED_NODES]}: remove these nodes"
            )
        s = degree.rsqrt()
        super().__init__(len(degree), _coo(a.indices(), weight * s[row] * s[column], len(degree)))
        self._weights = weight
        self.num_edges = len(weight) // 2

    @classmethod
    def from_edges(
        cls,
        edge_index: Int[Tensor, "2 edges"],
        weights: Float[Tensor, " edges"] | None = None,
        num_nodes: int | None = None,
    ) -> "SparseLaplacian":
        """Build the graph from a list of edges in the format of PyTorch Geometric.

        Args:
            edge_index: The two nodes of each edge. Each undirected edge is listed in both directions.
            weights: Weight of each edge; all weights are 1 by default.
            num_nodes: Number of nodes; by default one more than the largest node number.

        Returns:
            The Laplacian of the graph.

        Raises:
            ValueError: If the shapes do not fit, if a node number is out of range, or if the graph breaks one of the
                conditions of :class:`SparseLaplacian`.

        Example:
            >>> SparseLaplacian.from_edges(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
            SparseLaplacian(num_nodes=3, num_edges=2)
        """
        edge_index = torch.as_tensor(edge_index).cpu()
        if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point():
            actual = f"{edge_index.dtype} {tuple(edge_index.shape)}"
            raise ValueError(f"expected edge_index to be whole numbers of shape (2, edges), got {actual}")
        if edge_index.shape[1] == 0:
            raise ValueError("expected at least one edge, got an empty edge_index")
        weights = torch.ones(edge_index.shape[1]) if weights is None else torch.as_tensor(weights).cpu()
        if weights.shape != edge_index.shape[1:]:
            raise ValueError(
                f"expected one weight per edge, in shape ({edge_index.shape[1]},), got shape {tuple(weights.shape)}"
            )
        first_node, last_node = int(edge_index.min()), int(edge_index.max())
        num_nodes = last_node + 1 if num_nodes is None else num_nodes
        if first_node < 0 or last_node >= num_nodes:
            raise ValueError(
                f"expected node numbers from 0 to {num_nodes - 1}, got numbers from {first_node} to {last_node}"
            )
        return cls(_coo(edge_index, weights, num_nodes))

    @classmethod
    def from_mask(
        cls, mask: Bool[Tensor, "height width"], neighbours: Neighbours = 8, diagonal: float = 1.0
    ) -> "SparseLaplacian":
        """Build the part of the pixel grid on which ``mask`` is true.

        The nodes are the pixels of the mask, row by row, so ``image[..., mask]`` is a signal on this graph.

        Args:
            mask: The pixels that belong to the graph.
            neighbours: Number of neighbours of an inner pixel, 4 or 8.
            diagonal: Weight of the diagonal edges, used with 8 neighbours only.

        Returns:
            The Laplacian of the graph.

        Raises:
            ValueError: If the mask is not a boolean image, is empty or has an isolated pixel, or if an option has an
                invalid value.

        Example:
            >>> SparseLaplacian.from_mask(torch.tensor([[True, True], [True, False]]))
            SparseLaplacian(num_nodes=3, num_edges=3)
        """
        mask = torch.as_tensor(mask).cpu()
        check_grid_options(neighbours, "free", diagonal)
        if mask.ndim != 2 or mask.dtype != torch.bool:
            raise ValueError(f"expected a mask of type bool (height, width), got {mask.dtype} {tuple(mask.shape)}")
        if not mask.any():
            raise ValueError("expected a mask with at least two neighbouring pixels, got an empty mask")
        num_nodes = int(mask.sum())
        # The node number of each pixel; -1 outside the mask and in a border on the left, the right and the bottom.
        node = torch.full((mask.shape[0] + 1, mask.shape[1] + 2), -1)
        node[:-1, 1:-1][mask] = torch.arange(num_nodes)
        start, right, down = node[:-1, 1:-1], node[:-1, 2:], node[1:, 1:-1]
        edges = [(right, 1.0), (down, 1.0)]
        if neighbours == 8:
            edges += [(node[1:, 2:], diagonal), (node[1:, :-2], diagonal)]
        one_direction = _coo(torch.empty(2, 0, dtype=torch.int64), torch.empty(0), num_nodes)
        for end, weight in edges:
            pairs = torch.stack((start, end))[:, (start >= 0) & (end >= 0)]
            one_direction += weight * _coo(pairs, torch.ones(pairs.shape[1]), num_nodes)
        return cls(one_direction + one_direction.T)

    @property
    def normalized_adjacency(self) -> Float[Tensor, "nodes nodes"]:
        """The sparse matrix :math:`D^{-1/2} A D^{-1/2}`, in float64 on the CPU."""
        return self._constant

    @property
    def adjacency(self) -> Float[Tensor, "nodes nodes"]:
        """The sparse matrix :math:`A` of edge weights, in float64 on the CPU."""
        return _coo(self._constant.indices(), self._weights, self.num_nodes)

    def shifted(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        r"""Compute :math:`(L - I) y`, see :meth:`Laplacian.shifted`."""
        self._check_signal(y)
        return -multiply_last_axis(self._constant_like(y), y)

    def _coarsen(self) -> ClusterCoarsening:
        """Compute :attr:`coarsening`."""
        a = self.adjacency
        a = (a / 2 + a.transpose(0, 1) / 2).coalesce()  # The constructor accepts rounding errors in a_ij = a_ji.
        cluster = heavy_edge_matching(a)
        if len(cluster.unique()) == self.num_nodes:
            raise ValueError(
                f"{self!r} cannot be coarsened: expected a connected component of at least 3 nodes, "
                "got components of 2 nodes only: coarsen fewer times, or use a larger graph"
            )
        return ClusterCoarsening(a, cluster, SparseLaplacian(contract(a, cluster)))

    def __repr__(self) -> str:
        return f"SparseLaplacian(num_nodes={self.num_nodes}, num_edges={self.num_edges})"


def _coo(edge_index: Tensor, weights: Tensor, num_nodes: int) -> Tensor:
    """Build a float64 COO matrix of ``num_nodes`` rows and columns."""
    return coo_matrix(edge_index, weights.double(), (num_nodes, num_nodes))


def _as_coo(adjacency: Any) -> Tensor:
    """Convert an adjacency matrix of any supported type to a float64 COO tensor without stored zeros."""
    if is_scipy_matrix := hasattr(adjacency, "tocoo"):  # This test does not need to import SciPy.
        adjacency = adjacency.tocoo()
    matrix: Any = (
        adjacency if is_scipy_matrix else torch.as_tensor(adjacency, dtype=torch.float64, device="cpu").detach()
    )
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"expected an adjacency matrix that is square and not empty, got shape {tuple(matrix.shape)}")
    if is_scipy_matrix:
        indices = torch.stack([torch.as_tensor(matrix.row).long(), torch.as_tensor(matrix.col).long()])
        values = torch.as_tensor(matrix.data)
    else:
        matrix = matrix.to_sparse_coo().coalesce()
        indices, values = matrix.indices(), matrix.values()
    return _coo(indices[:, values != 0], values[values != 0], matrix.shape[0])


def _reject_entries(a: Tensor, is_wrong: Tensor, message: str) -> None:
    """Raise ``message`` with the first entries of ``a`` for which ``is_wrong`` is true, if there are any."""
    if is_wrong.any():
        positions = a.indices().T[is_wrong][:MAX_LISTED_ENTRIES].tolist()
        weights = a.values()[is_wrong][:MAX_LISTED_ENTRIES].tolist()
        entries = ", ".join(f"{weight:g} at ({i}, {j})" for (i, j), weight in zip(positions, weights, strict=True))
        raise ValueError(message.format(entries + (" ..." if is_wrong.sum() > MAX_LISTED_ENTRIES else "")))
