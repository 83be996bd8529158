import re

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
def test_every_input_format_gives_the_laplacian_of_scipy(adjacency):
    torch.testing.assert_close(SparseLaplacian(adjacency).to_dense(), normalized_laplacian(A), rtol=0, atol=1e-15)


def test_edges_in_the_format_of_pytorch_geometric():
    row, column = np.nonzero(A)
    edge_index, weights = torch.from_numpy(np.stack([row, column])), torch.from_numpy(A[row, column])
    graph = SparseLaplacian.from_edges(edge_index, weights)
    torch.testing.assert_close(graph.to_dense(), normalized_laplacian(A), rtol=0, atol=1e-15)
    assert graph.num_edges == len(row) // 2
    unweighted = SparseLaplacian.from_edges(edge_index)
    torch.testing.assert_close(unweighted.to_dense(), normalized_laplacian((A > 0) * 1.0), rtol=0, atol=1e-15)


def test_stored_zeros_are_not_edges():
    a = coo_matrix(([1.0, 1.0, 0.0, 0.0], ([0, 1, 0, 2], [1, 0, 2, 0])), shape=(3, 3))
    with pytest.raises(ValueError, match=r"1 isolated, \[2\]"):
        SparseLaplacian(a)


@pytest.mark.parametrize("neighbours", [4, 8])
def test_a_full_mask_gives_the_grid(neighbours):
    y = torch.rand(3, 30, dtype=torch.float64)
    graph = SparseLaplacian.from_mask(torch.ones(5, 6, dtype=torch.bool), neighbours, diagonal=0.5)
    torch.testing.assert_close(graph(y), GridLaplacian(5, 6, neighbours, diagonal=0.5)(y), rtol=0, atol=1e-14)


def test_a_mask_gives_the_subgraph_of_the_grid():
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(7, 8, generator=generator) < 0.8
    nodes = mask.flatten().numpy()
    expected = normalized_laplacian(grid_adjacency(7, 8, 8, "free")[nodes][:, nodes])
    torch.testing.assert_close(SparseLaplacian.from_mask(mask).to_dense(), expected, rtol=0, atol=1e-15)


def test_signals_may_have_any_number_of_leading_axes():
    graph = SparseLaplacian(A)
    y = torch.rand(2, 3, 4, 12)
    assert graph(y).shape == y.shape
    torch.testing.assert_close(graph(y)[1, 2, 3], graph(y[1, 2, 3]))


def test_repr_shows_the_sizes():
    assert repr(SparseLaplacian(np.ones((3, 3)) - np.eye(3))) == "SparseLaplacian(num_nodes=3, num_edges=3)"


def test_the_normalized_adjacency_matrix_is_public():
    expected = torch.eye(len(A), dtype=torch.float64) - normalized_laplacian(A)
    torch.testing.assert_close(SparseLaplacian(A).normalized_adjacency.to_dense(), expected, rtol=0, atol=1e-15)


def changed(row, column, weight, symmetric=True):
    """The graph with one other edge weight."""
    a = A.copy()
    a[row, column] = weight
    if symmetric:
        a[column, row] = weight
    return a


@pytest.mark.parametrize(
    ("adjacency", "values"),
    [
        (changed(0, 1, np.nan), ["finite", "nan at (0, 1)"]),
        (changed(2, 3, np.inf), ["finite", "inf at (2, 3)"]),
        (changed(0, 1, -2.0), ["positive", "-2 at (0, 1)", "-2 at (1, 0)"]),
        (changed(1, 1, 3.0), ["itself", "3 at (1, 1)", "diagonal"]),
        (-A, ["positive", " ..."]),
        (np.pad(A, (0, 1)), ["1 isolated", "[12]"]),
        (np.zeros((7, 7)), ["7 isolated", "[0, 1, 2, 3, 4]"]),
        (np.zeros((0, 0)), ["square", "(0, 0)"]),
        (np.zeros((3, 4)), ["square", "(3, 4)"]),
        (np.array([[0, 1.0, 0], [2, 0, 1], [0, 1, 0]]), ["a_ij = a_ji", "-1 at (0, 1)", "both directions"]),
    ],
)
def test_errors_list_the_wrong_entries(adjacency, values):
    with pytest.raises(ValueError, match=".*".join(map(re.escape, values))):
        SparseLaplacian(adjacency)


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ({"edge_index": torch.zeros(3, 2, dtype=torch.int64)}, ["(2, edges)", "torch.int64 (3, 2)"]),
        ({"edge_index": torch.zeros(2, 2)}, ["whole numbers", "torch.float32 (2, 2)"]),
        ({"edge_index": torch.zeros(2, 0, dtype=torch.int64)}, ["at least one edge", "empty"]),
        ({"weights": torch.ones(1)}, ["one weight per edge", "(2,)", "(1,)"]),
        ({"num_nodes": 1}, ["0 to 0", "0 to 1"]),
        ({"edge_index": torch.tensor([[0, -1], [-1, 0]])}, ["-1 to 0"]),
    ],
)
def test_errors_name_what_is_wrong_with_the_edges(arguments, values, without_shape_checks):
    with pytest.raises(ValueError, match=".*".join(map(re.escape, values))):
        SparseLaplacian.from_edges(**({"edge_index": torch.tensor([[0, 1], [1, 0]])} | arguments))


@pytest.mark.parametrize(
    ("mask", "options", "values"),
    [
        (torch.zeros(3, 3, dtype=torch.bool), {}, ["two neighbouring pixels", "empty"]),
        (torch.ones(3, 3), {}, ["bool (height, width)", "torch.float32 (3, 3)"]),
        (torch.tensor([[True, True, False, True]]), {}, ["1 isolated", "[2]"]),
        (torch.ones(3, 3, dtype=torch.bool), {"neighbours": 6}, ["neighbours", "4 or 8", "6"]),
        (torch.ones(3, 3, dtype=torch.bool), {"diagonal": 0.0}, ["diagonal", "positive", "0.0"]),
    ],
)
def test_errors_name_what_is_wrong_with_a_mask(mask, options, values, without_shape_checks):
    with pytest.raises(ValueError, match=".*".join(map(re.escape, values))):
        SparseLaplacian.from_mask(mask, **options)


def test_the_adjacency_matrix_is_public():
    assert torch.equal(SparseLaplacian(A).adjacency.to_dense(), torch.from_numpy(A))
