import time
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, shortest_path

from example_graphs import GRAPHS, circulant, from_edges, path, ring, side_by_side, star
from oracles import grid_adjacency
from tigranet.graphs.heavy_edge_matching import heavy_edge_matching


def clusters_of(adjacency):
    """Return the cluster of each node of a dense or SciPy adjacency matrix."""
    matrix = coo_array(adjacency)
    indices = torch.from_numpy(np.stack((matrix.row, matrix.col)).astype(np.int64))
    values = torch.from_numpy(matrix.data.astype(np.float64))
    return heavy_edge_matching(torch.sparse_coo_tensor(indices, values, matrix.shape).coalesce()).numpy()


def groups(cluster):
    return {frozenset(np.flatnonzero(cluster == c).tolist()) for c in np.unique(cluster)}


@pytest.fixture(params=GRAPHS.values(), ids=GRAPHS.keys())
def adjacency(request):
    return request.param


# Results computed by hand. The score of an edge is a_ij (1 / d_i + 1 / d_j).


@pytest.mark.parametrize(
    ("adjacency", "expected"),
    [
        (path(3), [0, 0, 1]),  # Both edges have score 3/2. One pair, which node 2 would join, but it would be isolated.
        (path(4), [0, 0, 1, 1]),
        (path(5), [0, 0, 0, 1, 1]),  # The outer edges have score 3/2. Node 2 joins by edge (1, 2), of score 1.
        (path(6), [0, 0, 1, 1, 2, 2]),
        (ring(3), [0, 0, 1]),
        (ring(6), [0, 0, 1, 1, 2, 2]),
        (ring(5), [0, 0, 1, 1, 0]),  # All scores are 1. Node 4 joins by edge (0, 4), which comes before (3, 4).
        (star(4), [0, 0, 0, 0, 1]),  # All leaves join the hub, except the last one.
        (from_edges((0, 1), (1, 2, 9.0), (2, 3)), [0, 0, 0, 1]),  # The middle edge has score 9/10 + 9/10.
        (from_edges((0, 1), (1, 2, 1.5), (2, 3)), [0, 0, 1, 1]),  # The outer edges have 1 + 2/5, the middle 6/5.
        (path(2), [0, 1]),  # A component of two nodes is not merged.
        (side_by_side(path(2), path(4)), [0, 1, 2, 2, 3, 3]),
        # Corners have degree 2, so the vertical edges at the two ends come first (score 1), then (1, 2) and (5, 6).
        (grid_adjacency(2, 4, 4, "free"), [0, 1, 1, 2, 0, 3, 3, 2]),
    ],
    ids=[
        *("path of 3", "path of 4", "path of 5", "path of 6", "triangle", "ring of 6", "ring of 5", "star"),
        *("heavy middle", "light middle", "pair", "pair and path", "grid"),
    ],
)
def test_clusters_computed_by_hand(adjacency, expected):
    assert clusters_of(adjacency).tolist() == expected


def test_clusters_are_numbered_in_the_order_of_their_smallest_nodes(adjacency):
    cluster = clusters_of(adjacency)
    numbers, smallest_node = np.unique(cluster, return_index=True)
    assert numbers.tolist() == list(range(len(numbers)))
    assert (np.diff(smallest_node) > 0).all()


def test_clusters_are_connected_and_at_most_three_edges_wide(adjacency):
    for nodes in map(sorted, groups(clusters_of(adjacency))):
        assert shortest_path(adjacency[np.ix_(nodes, nodes)] > 0, unweighted=True).max() <= 3


def test_each_component_has_at_least_two_clusters_and_at_most_two_thirds_of_its_nodes(adjacency):
    cluster = clusters_of(adjacency)
    _, component = connected_components(adjacency)
    for c in np.unique(component):
        nodes, clusters = (component == c).sum(), len(np.unique(cluster[component == c]))
        assert 2 <= clusters <= max(2, nodes / 2)


@pytest.mark.parametrize("name", [name for name in GRAPHS if len(GRAPHS[name]) <= 60])
def test_pairs_are_those_of_the_definition(name):
    """Take the edge of highest score between two free nodes, with ties by node number, until none is left."""
    adjacency, cluster = GRAPHS[name], clusters_of(GRAPHS[name])
    degree, component = adjacency.sum(1), connected_components(adjacency)[1].tolist()
    free, component_size = set(range(len(adjacency))), Counter(component)
    while edges := [
        (-float(f"{adjacency[i, j] / degree[i] + adjacency[i, j] / degree[j]:.11e}"), i, j)
        for i in free
        for j in free
        if i < j and adjacency[i, j] > 0
    ]:
        _, i, j = min(edges)
        free -= {i, j}
        assert (cluster[i] == cluster[j]) == (component_size[component[i]] > 2)


def test_the_order_of_the_edges_does_not_matter(adjacency):
    expected, matrix, rng = clusters_of(adjacency), coo_array(adjacency), np.random.default_rng(0)
    for _ in range(5):
        order = rng.permutation(matrix.nnz)
        shuffled = coo_array((matrix.data[order], (matrix.row[order], matrix.col[order])), shape=matrix.shape)
        assert (clusters_of(shuffled) == expected).all()


@pytest.mark.parametrize("name", ["random weights", "nearest neighbours", "weights of many magnitudes"])
def test_if_all_scores_differ_the_numbering_of_the_nodes_does_not_matter(name):
    adjacency, rng = GRAPHS[name], np.random.default_rng(0)
    expected = groups(clusters_of(adjacency))
    for _ in range(5):
        new_number = rng.permutation(len(adjacency))
        renumbered = np.empty_like(adjacency)
        renumbered[np.ix_(new_number, new_number)] = adjacency
        assert {frozenset(new_number[list(group)].tolist()) for group in expected} == groups(clusters_of(renumbered))


def test_equal_scores_are_decided_by_the_numbering_so_a_rotated_ring_has_other_clusters():
    rotated = np.roll(clusters_of(ring(8)), 1)
    assert groups(rotated) != groups(clusters_of(ring(8)))


@pytest.mark.parametrize("factor", [1e-150, 3.0, 1e150])
def test_a_common_factor_of_all_weights_does_not_matter(adjacency, factor):
    assert (clusters_of(factor * adjacency) == clusters_of(adjacency)).all()


def test_rounding_errors_do_not_decide_between_equal_scores():
    noise = np.triu(np.random.default_rng(0).uniform(-1e-15, 1e-15, (12, 12)))
    adjacency = circulant(12, [0.1, 0.7, 0.2])
    assert (clusters_of(adjacency * (1 + noise + noise.T)) == clusters_of(adjacency)).all()


def test_50_000_nodes_take_less_than_three_seconds():
    side, nodes = 224, 224 * 224
    number = np.arange(nodes).reshape(side, side)
    neighbours = [(number[:, 1:], number[:, :-1]), (number[1:], number[:-1]), (number[1:, 1:], number[:-1, :-1])]
    starts, ends = (np.concatenate([pair[end].ravel() for pair in neighbours]) for end in (0, 1))
    weights = np.random.default_rng(0).random(len(starts))
    half = coo_array((weights, (starts, ends)), shape=(nodes, nodes))
    adjacency = (half + half.T).tocoo()
    start = time.perf_counter()
    cluster = clusters_of(adjacency)
    assert time.perf_counter() - start < 3
    assert nodes / 4 < len(np.unique(cluster)) <= nodes / 2
