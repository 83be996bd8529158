import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import connected_components

from example_graphs import GRAPHS, nearest_neighbours, path, ring, side_by_side
from oracles import grid_adjacency, normalized_laplacian
from tigranet import GridLaplacian, SparseLaplacian
from tigranet.graphs import Eigenbasis
from tigranet.graphs.cluster_coarsening import ClusterCoarsening, contract


@pytest.fixture(params=GRAPHS.values(), ids=GRAPHS.keys())
def adjacency(request):
    return request.param


def indicator(cluster):
    """Return the matrix with a row per cluster that is 1 for its nodes."""
    return np.equal.outer(np.arange(cluster.max() + 1), cluster).astype(float)


def test_the_coarse_laplacian_is_that_of_the_product_of_dense_matrices(adjacency):
    coarsening = SparseLaplacian(adjacency).coarsening
    q = indicator(coarsening.cluster.numpy())
    expected = q @ adjacency @ q.T
    np.fill_diagonal(expected, 0)
    torch.testing.assert_close(coarsening.laplacian.to_dense(), normalized_laplacian(expected), rtol=1e-12, atol=1e-14)


def test_signals_are_smoothed_and_averaged_over_clusters(adjacency):
    coarsening = SparseLaplacian(adjacency).coarsening
    y = np.random.default_rng(0).standard_normal((2, 3, len(adjacency)))
    smooth = (y + y @ adjacency / adjacency.sum(1)) / 2
    expected = np.stack(
        [smooth[..., coarsening.cluster.numpy() == c].mean(-1) for c in range(coarsening.laplacian.num_nodes)], axis=-1
    )
    torch.testing.assert_close(coarsening(torch.from_numpy(y)), torch.from_numpy(expected), rtol=0, atol=1e-14)


def test_a_coarse_node_is_in_a_set_if_one_of_its_nodes_is(adjacency):
    coarsening = SparseLaplacian(adjacency).coarsening
    omega = torch.rand(4, 2, len(adjacency)) < 0.2
    expected = [omega[..., coarsening.cluster == c].any(-1) for c in range(coarsening.laplacian.num_nodes)]
    assert torch.equal(coarsening.nodes(omega), torch.stack(expected, dim=-1))
    assert coarsening.nodes(torch.ones(len(adjacency), dtype=torch.bool)).all()
    assert not coarsening.nodes(torch.zeros(len(adjacency), dtype=torch.bool)).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constants_stay_and_values_stay_within_their_range(adjacency, dtype):
    coarsening, tolerance = SparseLaplacian(adjacency).coarsening, 8 * torch.finfo(dtype).eps
    constant = coarsening(torch.full((len(adjacency),), 0.7, dtype=dtype))
    assert constant.dtype == dtype
    torch.testing.assert_close(constant, torch.full_like(constant, 0.7), rtol=0, atol=tolerance)
    y = torch.rand(5, len(adjacency), dtype=dtype)
    assert (coarsening(y).amax(1) <= y.amax(1) + tolerance).all()
    assert (coarsening(y).amin(1) >= y.amin(1) - tolerance).all()


def test_float32_and_float64_agree(adjacency):
    coarsening, y = SparseLaplacian(adjacency).coarsening, torch.rand(3, len(adjacency), dtype=torch.float64)
    torch.testing.assert_close(coarsening(y.float()).double(), coarsening(y), rtol=0, atol=1e-6)


def test_gradients(adjacency):
    coarsening = SparseLaplacian(adjacency).coarsening
    y = torch.rand(2, len(adjacency), dtype=torch.float64, requires_grad=True)
    g = torch.rand(2, coarsening.laplacian.num_nodes, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(coarsening(y), y, g)
    matrix = coarsening(torch.eye(len(adjacency), dtype=torch.float64)).T
    torch.testing.assert_close(gradient, g @ matrix, rtol=0, atol=1e-14)


def test_gradients_by_differences():
    coarsening = SparseLaplacian(GRAPHS["random weights"]).coarsening
    assert torch.autograd.gradcheck(coarsening, torch.rand(2, 60, dtype=torch.float64, requires_grad=True))


def test_signals_may_have_any_number_of_leading_axes_and_any_memory_layout():
    coarsening = SparseLaplacian(ring(10)).coarsening
    y = torch.rand(10, 3, 2, 4).permute(2, 1, 3, 0)
    result = coarsening(y)
    assert result.shape == (2, 3, 4, 5)
    torch.testing.assert_close(result[1, 2, 3], coarsening(y[1, 2, 3].contiguous()))
    assert coarsening(torch.rand(0, 10)).shape == (0, 5)
    assert coarsening.nodes(torch.zeros(0, 10, dtype=torch.bool)).shape == (0, 5)


def test_a_path_of_pairs_is_filtered_as_the_pixel_grid():
    """Away from the ends of the path, the filter is (1, 3, 3, 1) / 8 with stride 2."""
    coarsening = SparseLaplacian(ring(12)).coarsening
    y = torch.rand(12, dtype=torch.float64)
    taps = torch.tensor([1, 3, 3, 1], dtype=torch.float64) / 8
    expected = torch.stack([y.roll(1 - 2 * c)[:4] @ taps for c in range(6)])
    torch.testing.assert_close(coarsening(y), expected, rtol=0, atol=1e-15)


def test_oscillations_between_neighbours_vanish_on_a_bipartite_graph():
    """A mean over clusters of three nodes alone would turn them into a third of their size."""
    rows, columns = np.indices((6, 7))
    for adjacency, parity in (
        (path(9), np.arange(9)),
        (ring(10), np.arange(10)),
        (grid_adjacency(6, 7, 4, "free"), (rows + columns).ravel()),
    ):
        alternating = torch.from_numpy((-1.0) ** parity)
        assert SparseLaplacian(adjacency).coarsening(alternating).abs().max() < 1e-15


def test_slow_signals_keep_their_energy_and_fast_ones_lose_it():
    """Energy per node of the eigenvectors of the lowest and of the highest tenth of the frequencies."""
    laplacian = SparseLaplacian(nearest_neighbours())
    waves = Eigenbasis.of(laplacian).chi.T
    energy = laplacian.coarsening(waves).square().mean(1) / waves.square().mean(1)
    assert energy[2:20].mean() > 0.5
    assert energy[-20:].mean() < 0.1


def test_coarsening_can_be_repeated_until_every_component_has_two_nodes():
    laplacian = SparseLaplacian(side_by_side(nearest_neighbours(), path(2), ring(7)))
    num_components, _ = connected_components(laplacian.adjacency.to_dense().numpy())
    while laplacian.num_nodes > 2 * num_components:
        num_nodes, laplacian = laplacian.num_nodes, laplacian.coarsening.laplacian
        assert laplacian.num_nodes <= max(2 * num_components, 0.67 * num_nodes)
        assert connected_components(laplacian.adjacency.to_dense().numpy())[0] == num_components
    with pytest.raises(ValueError, match=r"num_nodes=.*cannot be coarsened.*at least 3 nodes.*2 nodes only"):
        _ = laplacian.coarsening


@pytest.mark.parametrize("name", ["grid", "nearest neighbours", "sphere"])
def test_usual_graphs_get_about_half_as_many_nodes(name):
    laplacian = SparseLaplacian(GRAPHS[name])
    for _ in range(3):
        before, laplacian = laplacian.num_nodes, laplacian.coarsening.laplacian
        assert 0.33 <= laplacian.num_nodes / before <= 0.5


def test_the_order_of_the_edges_does_not_matter():
    row, column = map(torch.from_numpy, np.nonzero(GRAPHS["sphere"]))
    y, expected = torch.rand(len(GRAPHS["sphere"])), SparseLaplacian(GRAPHS["sphere"]).coarsening
    order = torch.randperm(len(row))
    coarsening = SparseLaplacian.from_edges(torch.stack((row, column))[:, order]).coarsening
    assert torch.equal(coarsening.cluster, expected.cluster)
    assert torch.equal(coarsening(y), expected(y))
    assert torch.equal(coarsening.laplacian.to_dense(), expected.laplacian.to_dense())


def test_a_mask_of_the_pixel_grid_can_be_coarsened():
    rows, columns = torch.meshgrid(torch.arange(20), torch.arange(30), indexing="ij")
    mask = (rows - 10) ** 2 + (columns - 15) ** 2 / 2 < 60
    laplacian = SparseLaplacian.from_mask(mask)
    assert laplacian.num_nodes / 4 < laplacian.coarsening.laplacian.num_nodes <= laplacian.num_nodes / 2


def test_a_matrix_that_is_symmetric_except_for_rounding_can_be_coarsened():
    adjacency = GRAPHS["random weights"] * (1 + 1e-15 * np.random.default_rng(0).uniform(-1, 1, (60, 60)))
    assert not (adjacency == adjacency.T).all()
    coarsening = SparseLaplacian(adjacency).coarsening
    coarse = coarsening.laplacian.adjacency.to_dense()
    assert torch.equal(coarse, coarse.T)
    assert torch.equal(coarsening.cluster, SparseLaplacian(GRAPHS["random weights"]).coarsening.cluster)


def test_contracted_weights_are_sums_and_symmetric_to_the_last_bit(adjacency):
    cluster = torch.arange(len(adjacency)) // 3
    result = contract(torch.from_numpy(adjacency).to_sparse(), cluster).to_dense()
    q = indicator(cluster.numpy())
    expected = q @ adjacency @ q.T
    np.fill_diagonal(expected, 0)
    torch.testing.assert_close(result, torch.from_numpy(expected), rtol=1e-12, atol=0)
    assert torch.equal(result, result.T)


def test_errors_name_the_coarsening_the_shape_and_the_dtype(without_shape_checks):
    coarsening = SparseLaplacian(ring(10)).coarsening
    with pytest.raises(ValueError, match=r"ClusterCoarsening\(10 -> 5 nodes\) reads 10 values.*\(2, 5\)"):
        coarsening(torch.rand(2, 5))
    with pytest.raises(ValueError, match=r"reads 10 values.*\(\)"):
        coarsening.nodes(torch.tensor(True))
    with pytest.raises(TypeError, match=r"float32 or float64.*torch\.float16"):
        coarsening(torch.rand(10).half())
    with pytest.raises(TypeError, match=r"booleans.*torch\.int64"):
        coarsening.nodes(torch.ones(10, dtype=torch.int64))


def test_clusters_of_any_origin_can_be_used():
    """The class also serves other clusterings, here squares of 2 x 2 pixels and the grid of half the size."""
    rows, columns = torch.meshgrid(torch.arange(4), torch.arange(6), indexing="ij")
    cluster = (rows // 2 * 3 + columns // 2).flatten()
    fine = torch.from_numpy(grid_adjacency(4, 6, 4, "torus")).to_sparse()
    coarsening = ClusterCoarsening(fine, cluster, GridLaplacian(2, 3, boundary="torus"))
    image = torch.rand(4, 6, dtype=torch.float64)
    neighbours = sum(image.roll(step, axis) for step in (-1, 1) for axis in (0, 1)) / 4
    expected = ((image + neighbours) / 2).reshape(2, 2, 3, 2).mean((1, 3)).flatten()
    torch.testing.assert_close(coarsening(image.flatten()), expected, rtol=0, atol=1e-15)
