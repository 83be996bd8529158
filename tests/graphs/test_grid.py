import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from oracles import GRIDS, grid_adjacency, normalized_laplacian
from tigranet import GridLaplacian, SparseLaplacian
from tigranet.graphs.grid import ISOTROPIC
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


@pytest.mark.parametrize(
    ("diagonal", "least", "most"), [(ISOTROPIC, 0.005, 0.0065), (1.0, 0.17, 0.18), (0.25, 0.02, 0.03)]
)
def test_how_differently_waves_are_weighed_by_their_direction(diagonal, least, most):
    """A plane wave is an eigenvector, far from the border; its eigenvalue should depend on its length alone."""
    grid, axis = GridLaplacian(7, 7, diagonal=diagonal), torch.arange(7, dtype=torch.float64) - 3
    worst = 0.0
    for wave in (3, 4, 6, 10):
        eigenvalues = []
        for degrees in range(0, 46, 5):
            angle = torch.tensor(np.radians(degrees))
            y = torch.cos(2 * torch.pi / wave * (axis * angle.cos() + axis[:, None] * angle.sin()))
            eigenvalues.append(grid(y.flatten())[24])  # at the centre, where the wave is 1
        worst = max(worst, float(max(eigenvalues) - min(eigenvalues)))
    assert least < worst < most


# image gradients


def correlated(image, stencil, boundary):
    """The stencil at each pixel, term by term; across a free border the nearest pixel is read."""
    height, width = image.shape
    answer = torch.zeros_like(image)
    for r in range(height):
        for c in range(width):
            for (i, j), weight in np.ndenumerate(stencil):
                row, column = r + i - 1, c + j - 1
                if boundary == "torus" and height > 2:
                    row %= height
                if boundary == "torus" and width > 2:
                    column %= width
                answer[r, c] += weight * image[min(max(row, 0), height - 1), min(max(column, 0), width - 1)]
    return answer


SCHARR = np.array([[-3, 0, 3], [-10, 0, 10], [-3, 0, 3]]) / 32


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("size", [(5, 5), (4, 7), (1, 6), (6, 1), (2, 5), (2, 2)])
def test_the_gradient_is_scharrs_stencil_and_the_second_is_it_twice(size, boundary):
    grid, image = GridLaplacian(*size, boundary=boundary), torch.rand(size, dtype=torch.float64)
    d_x, d_y = (lambda f: correlated(f, SCHARR, boundary)), (lambda f: correlated(f, SCHARR.T, boundary))
    for came, wanted in zip(grid.gradient(image.flatten()), (d_x(image), d_y(image)), strict=True):
        torch.testing.assert_close(came, wanted.flatten(), rtol=0, atol=1e-15)
    second = d_x(d_x(image)) - d_y(d_y(image)), d_x(d_y(image)) + d_y(d_x(image))
    for came, wanted in zip(grid.second_gradient(image.flatten()), second, strict=True):
        torch.testing.assert_close(came, wanted.flatten(), rtol=0, atol=1e-15)


def test_gradients_of_quadratic_images_are_exact_inside():
    y, x = torch.meshgrid(torch.arange(9.0), torch.arange(11.0), indexing="ij")
    image = (2 + 3 * x - y + 0.5 * x**2 - 2 * x * y + 0.25 * y**2).double()
    grid, inner = GridLaplacian(9, 11), (slice(2, -2), slice(2, -2))
    first, second = grid.gradient(image.flatten()), grid.second_gradient(image.flatten())
    wanted = (3 + x - 2 * y, -1 - 2 * x + 0.5 * y, torch.full_like(x, 1 - 0.5), torch.full_like(x, 2 * -2.0))
    for came, exact in zip((*first, *second), wanted, strict=True):
        torch.testing.assert_close(came.reshape(9, 11)[inner], exact.double()[inner], rtol=0, atol=1e-12)


def test_a_constant_has_no_gradient_at_the_border_either():
    for boundary in ("free", "torus"):
        grid = GridLaplacian(4, 6, boundary=boundary)
        assert all(
            (part == 0).all() for part in (*grid.gradient(torch.ones(24)), *grid.second_gradient(torch.ones(24)))
        )


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_gradients_turn_and_reflect_with_the_image_bit_for_bit(boundary):
    grid, y = GridLaplacian(9, 9, boundary=boundary), torch.randn(4, 81)
    for name, transform in SQUARE.items():
        quarter, reflected = int(name.split()[0]) // 90, "reflected" in name
        move = on_nodes(transform, 9, 9)
        for order, gradient in ((1, grid.gradient), (2, grid.second_gradient)):
            a, b = map(move, gradient(y))
            for _ in range(quarter):
                a, b = (b, -a) if order == 1 else (-a, -b)
            if reflected:
                a, b = (-a, b) if order == 1 else (a, -b)
            for came, wanted in zip(gradient(move(y)), (a, b), strict=True):
                assert torch.equal(came, wanted), (name, order)


def test_gradients_shift_on_the_torus_bit_for_bit():
    grid, y = GridLaplacian(5, 7, boundary="torus"), torch.randn(2, 35)
    for shift in torus_shifts(5, 7):
        for part in range(2):
            for gradient in (grid.gradient, grid.second_gradient):
                error = equivariance_error(lambda y, g=gradient, p=part: g(y)[p], y, on_nodes(shift, 5, 7))
                assert error == 0


@pytest.mark.parametrize("wave", [4, 6, 10])
def test_the_direction_of_a_wave_is_right_within_half_a_degree(wave):
    grid, axis = GridLaplacian(21, 21), torch.arange(21, dtype=torch.float64) - 10
    for degrees in range(0, 360, 7):
        angle = torch.tensor(np.radians(degrees))
        phase = 2 * torch.pi / wave * (axis * angle.cos() + axis[:, None] * angle.sin())
        for order, gradient, image in ((1, grid.gradient, phase.sin()), (2, grid.second_gradient, -phase.cos())):
            a, b = (part[220] for part in gradient(image.flatten()))  # at the centre
            turn = torch.atan2(b, a) - order * angle
            assert torch.atan2(turn.sin(), turn.cos()).abs().rad2deg() / order < 0.5


def test_gradients_can_be_differentiated():
    grid = GridLaplacian(3, 4)
    assert torch.autograd.gradcheck(grid.second_gradient, torch.rand(12, dtype=torch.float64, requires_grad=True))
