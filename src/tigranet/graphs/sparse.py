"""Any weighted undirected graph, as a sparse matrix."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tigranet.graphs.grid import Neighbours, check_neighbourhood
from tigranet.graphs.laplacian import Laplacian


class SparseLaplacian(Laplacian):
    """The normalized Laplacian of the graph with adjacency matrix ``adjacency``: a SciPy sparse matrix, a
    dense array, or a PyTorch tensor, dense or sparse.

    The weights are symmetric, finite and non-negative, with none from a node to itself, and every node has
    a neighbour. :meth:`from_edges` reads an ``edge_index``, :meth:`from_mask` a piece of the pixel grid.

    >>> SparseLaplacian([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    SparseLaplacian(num_nodes=3, num_edges=2)
    """

    def __init__(self, adjacency: Any) -> None:
        a = _as_coo(adjacency)
        (row, column), weight = a.indices(), a.values()
        _none(a, ~torch.isfinite(weight), "edge weights are finite, got {}")
        _none(a, weight < 0, "edge weights are not negative, got {}")
        _none(a, row == column, "no edge joins a node to itself, got {}: set the diagonal to zero")
        uneven = (a - a.transpose(0, 1)).coalesce()
        cure = "give each edge in both directions, one weight"
        _none(uneven, uneven.values().abs() > 1e-10 * weight.sum(), "a_ij = a_ji, got a_ij - a_ji of {}: " + cure)
        degree = torch.zeros(a.shape[0], dtype=weight.dtype).index_add(0, row, weight)
        if lone := torch.nonzero(degree == 0).flatten().tolist():
            raise ValueError(f"every node has a neighbour, got {len(lone)} isolated, {lone[:5]}: leave them out")
        root = degree.rsqrt()
        super().__init__(len(degree), _coo(a.indices(), weight * root[row] * root[column], len(degree)))
        self.num_edges = len(weight) // 2

    @classmethod
    def from_edges(
        cls,
        edge_index: Int[Tensor, "2 edges"],
        weights: Float[Tensor, " edges"] | None = None,
        num_nodes: int | None = None,
    ) -> "SparseLaplacian":
        """From edges (i, j) as PyTorch Geometric writes them: each in both directions, weight 1 unless given.

        >>> SparseLaplacian.from_edges(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        SparseLaplacian(num_nodes=3, num_edges=2)
        """
        edge_index = torch.as_tensor(edge_index).cpu()
        if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point():
            came = f"{edge_index.dtype} {tuple(edge_index.shape)}"
            raise ValueError(f"edge_index is whole numbers (2, edges), got {came}")
        if edge_index.shape[1] == 0:
            raise ValueError("a graph has at least one edge, got an empty edge_index")
        weights = torch.ones(edge_index.shape[1]) if weights is None else torch.as_tensor(weights).cpu()
        if weights.shape != edge_index.shape[1:]:
            raise ValueError(f"one weight an edge: wanted shape ({edge_index.shape[1]},), got {tuple(weights.shape)}")
        nodes = int(edge_index.max()) + 1 if num_nodes is None else num_nodes
        if int(edge_index.min()) < 0 or int(edge_index.max()) >= nodes:
            raise ValueError(f"nodes are 0 to {nodes - 1}, got {int(edge_index.min())} to {int(edge_index.max())}")
        return cls(_coo(edge_index, weights, nodes))

    @classmethod
    def from_mask(
        cls, mask: Bool[Tensor, "height width"], neighbours: Neighbours = 8, diagonal: float = 1.0
    ) -> "SparseLaplacian":
        """The piece of the pixel grid where ``mask`` is true; its nodes are those pixels, row by row, so
        ``image[..., mask]`` is the signal.

        >>> SparseLaplacian.from_mask(torch.tensor([[True, True], [True, False]]))
        SparseLaplacian(num_nodes=3, num_edges=3)
        """
        mask = torch.as_tensor(mask).cpu()
        check_neighbourhood(neighbours, diagonal)
        if mask.ndim != 2 or mask.dtype != torch.bool:
            raise ValueError(f"a mask is bool (height, width), got {mask.dtype} {tuple(mask.shape)}")
        if not mask.any():
            raise ValueError("a mask has at least two neighbouring pixels, got an empty one")
        nodes = int(mask.sum())
        number = torch.full((mask.shape[0] + 1, mask.shape[1] + 2), -1)  # one pixel more on each side but the top
        number[:-1, 1:-1][mask] = torch.arange(nodes)
        here, right, down = number[:-1, 1:-1], number[:-1, 2:], number[1:, 1:-1]
        steps = [(right, 1.0), (down, 1.0)]
        if neighbours == 8:
            steps += [(number[1:, 2:], diagonal), (number[1:, :-2], diagonal)]
        half = _coo(torch.empty(2, 0), torch.empty(0), nodes)
        for there, weight in steps:
            pairs = torch.stack((here, there))[:, (here >= 0) & (there >= 0)]
            half += weight * _coo(pairs, torch.ones(pairs.shape[1]), nodes)
        return cls(half + half.T)

    def shifted(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        self._check(y)
        return -torch.sparse.mm(self._constant_like(y), y.reshape(-1, self.num_nodes).T).T.reshape(y.shape)

    def __repr__(self) -> str:
        return f"SparseLaplacian(num_nodes={self.num_nodes}, num_edges={self.num_edges})"


def _coo(edge_index: Tensor, weights: Tensor, nodes: int) -> Tensor:
    with torch.sparse.check_sparse_tensor_invariants():
        return torch.sparse_coo_tensor(edge_index, weights.double(), (nodes, nodes)).coalesce()


def _as_coo(adjacency: Any) -> Tensor:
    """``adjacency``, whatever it is, as a float64 COO tensor with no zeros stored."""
    if scipy := hasattr(adjacency, "tocoo"):  # SciPy is not imported for this
        adjacency = adjacency.tocoo()
    matrix: Any = adjacency if scipy else torch.as_tensor(adjacency, dtype=torch.float64, device="cpu").detach()
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"an adjacency matrix is square and not empty, got shape {tuple(matrix.shape)}")
    if scipy:
        indices = torch.stack([torch.as_tensor(matrix.row).long(), torch.as_tensor(matrix.col).long()])
        values = torch.as_tensor(matrix.data)
    else:
        matrix = matrix.to_sparse_coo().coalesce()
        indices, values = matrix.indices(), matrix.values()
    return _coo(indices[:, values != 0], values[values != 0], matrix.shape[0])


def _none(a: Tensor, bad: Tensor, message: str) -> None:
    """Raise ``message`` with the first entries of ``a`` where ``bad`` holds, if there are any."""
    if bad.any():
        entries = zip(a.indices().T[bad][:3].tolist(), a.values()[bad][:3].tolist(), strict=True)
        came = ", ".join(f"{weight:g} at ({i}, {j})" for (i, j), weight in entries)
        raise ValueError(message.format(came + (" ..." if bad.sum() > 3 else "")))
