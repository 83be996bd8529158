import numpy as np
import pytest
import torch
from scipy.sparse import coo_matrix, csc_array, csr_matrix

from oracles import grid_adjacency, normalized_laplacian, random_graph
from tigranet import GridLaplacian, SparseLaplacian

A = random_graph()


@pytest.mark.parametrize(
    "adjacency",
    [A, A.tolist(), torch.from_numpy(A), torch.from_numpy(A).to_sparse(), coo_matrix(A), csr_matrix(A), csc_array(A)],
    ids=["array", "list", "tensor", "sparse tensor", "coo", "csr", "csc"],
)
def test_every_way_to_write_a_graph_gives_scipys_laplacian(adjacency):
    torch.testing.assert_close(SparseLaplacian(adjacency).to_dense(), normalized_laplacian(A), rtol=0, atol=1e-15)


def test_edges_as_pytorch_geometric_writes_them():
    row, column = np.nonzero(A)
    edge_index, weights = torch.from_numpy(np.stack([row, column])), torch.from_numpy(A[row, column])
    graph = SparseLaplacian.from_edges(edge_index, weights)
    torch.testing.assert_close(graph.to_dense(), normalized_laplacian(A), rtol=0, atol=1e-15)
    assert graph.num_edges == len(row) // 2
    unweighted = SparseLaplacian.from_edges(edge_index)
    torch.testing.assert_close(unweighted.to_dense(), normalized_laplacian((A > 0) * 1.0), rtol=0, atol=1e-15)


def test_stored_zeros_are_no_edges():
    a = coo_matrix(([1.0, 1.0, 0.0, 0.0], ([0, 1, 0, 2], [1, 0, 2, 0])), shape=(3, 3))
    with pytest.raises(ValueError, match=r"1 isolated, \[2\]"):
        SparseLaplacian(a)


@pytest.mark.parametrize("neighbours", [4, 8])
def test_a_full_mask_is_the_grid(neighbours):
    y = torch.rand(3, 30, dtype=torch.float64)
    graph = SparseLaplacian.from_mask(torch.ones(5, 6, dtype=torch.bool), neighbours, diagonal=0.5)
    torch.testing.assert_close(graph(y), GridLaplacian(5, 6, neighbours, diagonal=0.5)(y), rtol=0, atol=1e-14)


def test_a_mask_is_the_piece_of_the_grid_cut_out():
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(7, 8, generator=generator) < 0.8
    kept = mask.flatten().numpy()
    wanted = normalized_laplacian(grid_adjacency(7, 8, 8, "free")[kept][:, kept])
    torch.testing.assert_close(SparseLaplacian.from_mask(mask).to_dense(), wanted, rtol=0, atol=1e-15)


def test_leading_axes_are_free():
    graph = SparseLaplacian(A)
    y = torch.rand(2, 3, 4, 12)
    assert graph(y).shape == y.shape
    torch.testing.assert_close(graph(y)[1, 2, 3], graph(y[1, 2, 3]))


def test_sizes_print_back():
    assert repr(SparseLaplacian(np.ones((3, 3)) - np.eye(3))) == "SparseLaplacian(num_nodes=3, num_edges=3)"
