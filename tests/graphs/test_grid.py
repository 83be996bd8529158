import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from oracles import GRIDS, grid_adjacency, normalized_laplacian
from tigranet import GridLaplacian, SparseLaplacian
from tigranet.testing import SQUARE, equivariance_error, on_nodes, torus_shifts


@pytest.mark.parametrize(("height", "width", "neighbours", "boundary", "diagonal"), GRIDS)
def test_stencil_is_scipy_is_sparse_is_dense(height, width, neighbours, boundary, diagonal):
    grid = GridLaplacian(height, width, neighbours, boundary, diagonal)
    adjacency = grid_adjacency(height, width, neighbours, boundary, diagonal)
    wanted = normalized_laplacian(adjacency)
    y = torch.rand(3, height * width, dtype=torch.float64)
    torch.testing.assert_close(grid(y), y @ wanted, rtol=0, atol=1e-14)
    torch.testing.assert_close(grid.to_dense(), wanted, rtol=0, atol=1e-15)
    torch.testing.assert_close(SparseLaplacian(csr_array(adjacency))(y), y @ wanted, rtol=0, atol=1e-14)


def test_inner_pixels_of_the_papers_grid_have_8_neighbours_of_weight_1():
    row = GridLaplacian(5, 5).to_dense()[12].reshape(5, 5)
    assert row[2, 2] == 1
    assert (row != 0).sum() == 9
    assert row[1, 1] == pytest.approx(-1 / 8)


def test_the_spectrum_ends_at_2_for_4_neighbours_and_at_1_52_for_8():
    """Reading 9."""
    assert torch.linalg.eigvalsh(GridLaplacian(28, 28, neighbours=4).to_dense())[-1] == pytest.approx(2, abs=1e-9)
    assert torch.linalg.eigvalsh(GridLaplacian(28, 28).to_dense())[-1] == pytest.approx(1.52, abs=0.005)


@pytest.mark.parametrize("name", SQUARE)
@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("diagonal", [1.0, 0.25])
def test_the_symmetries_of_the_square_hold_bit_for_bit(name, boundary, neighbours, diagonal):
    grid = GridLaplacian(9, 9, neighbours, boundary, diagonal)
    y = torch.randn(4, 81)
    assert equivariance_error(grid, y, on_nodes(SQUARE[name], 9, 9)) == 0


def test_every_shift_of_the_torus_holds_bit_for_bit():
    grid = GridLaplacian(5, 7, boundary="torus")
    y = torch.randn(2, 35)
    assert max(equivariance_error(grid, y, on_nodes(shift, 5, 7)) for shift in torus_shifts(5, 7)) == 0


def test_a_shift_is_no_symmetry_of_the_free_grid():
    grid, shift = GridLaplacian(5, 7), list(torus_shifts(5, 7))[8]
    assert equivariance_error(grid, torch.randn(2, 35), on_nodes(shift, 5, 7)) > 0.01


def test_a_turned_rectangle_is_the_other_rectangle():
    y = torch.randn(3, 4, 6)
    turned = GridLaplacian(6, 4)(torch.rot90(y, 1, (1, 2)).flatten(1)).reshape(3, 6, 4)
    wanted = torch.rot90(GridLaplacian(4, 6)(y.flatten(1)).reshape(3, 4, 6), 1, (1, 2))
    assert torch.equal(turned, wanted)


def test_a_large_image_needs_no_matrix():
    """A dense 512 x 512 grid would be 550 GB in float64."""
    grid = GridLaplacian(512, 512)
    assert torch.isfinite(grid(torch.rand(2, 512 * 512))).all()


def test_a_constant_over_the_root_of_the_degrees_is_harmonic():
    for boundary in ("free", "torus"):
        degree = torch.from_numpy(grid_adjacency(4, 6, 8, boundary).sum(0))
        assert GridLaplacian(4, 6, boundary=boundary)(degree.sqrt()).abs().max() < 1e-14


def test_numbers_print_back():
    assert repr(GridLaplacian(2, 3, 4, "torus")) == "GridLaplacian(2, 3, neighbours=4, boundary='torus')"
    assert repr(GridLaplacian(2, 3, diagonal=0.25)).endswith("boundary='free', diagonal=0.25)")
    assert np.prod([2, 3]) == GridLaplacian(2, 3).num_nodes
