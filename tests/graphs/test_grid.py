import re

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from oracles import GRIDS, grid_adjacency, normalized_laplacian
from tigranet import GridLaplacian, SparseLaplacian
from tigranet.graphs.grid import ISOTROPIC
from tigranet.testing import SQUARE, equivariance_error, on_nodes, torus_shifts


@pytest.mark.parametrize(("height", "width", "neighbours", "boundary", "diagonal"), GRIDS)
def test_stencil_equals_scipy_sparse_and_dense_laplacians(height, width, neighbours, boundary, diagonal):
    grid = GridLaplacian(height, width, neighbours, boundary, diagonal)
    adjacency = grid_adjacency(height, width, neighbours, boundary, diagonal)
    expected = normalized_laplacian(adjacency)
    y = torch.rand(3, height * width, dtype=torch.float64)
    torch.testing.assert_close(grid(y), y @ expected, rtol=0, atol=1e-14)
    torch.testing.assert_close(grid.to_dense(), expected, rtol=0, atol=1e-15)
    torch.testing.assert_close(SparseLaplacian(csr_array(adjacency))(y), y @ expected, rtol=0, atol=1e-14)


def test_inner_pixels_of_the_paper_grid_have_8_neighbours_of_weight_1():
    row = GridLaplacian(5, 5).to_dense()[12].reshape(5, 5)
    assert row[2, 2] == 1
    assert (row != 0).sum() == 9
    assert row[1, 1] == pytest.approx(-1 / 8)


def test_largest_eigenvalue_is_2_for_4_neighbours_and_1_52_for_8():
    """Checks reading 9."""
    assert torch.linalg.eigvalsh(GridLaplacian(28, 28, neighbours=4).to_dense())[-1] == pytest.approx(2, abs=1e-9)
    assert torch.linalg.eigvalsh(GridLaplacian(28, 28).to_dense())[-1] == pytest.approx(1.52, abs=0.005)


@pytest.mark.parametrize("name", SQUARE)
@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("diagonal", [1.0, 0.25])
def test_symmetries_of_the_square_are_exact_bit_for_bit(name, boundary, neighbours, diagonal):
    grid = GridLaplacian(9, 9, neighbours, boundary, diagonal)
    y = torch.randn(4, 81)
    assert equivariance_error(grid, y, on_nodes(SQUARE[name], 9, 9)) == 0


def test_every_shift_of_the_torus_is_exact_bit_for_bit():
    grid = GridLaplacian(5, 7, boundary="torus")
    y = torch.randn(2, 35)
    assert max(equivariance_error(grid, y, on_nodes(shift, 5, 7)) for shift in torus_shifts(5, 7)) == 0


def test_a_shift_is_not_a_symmetry_of_the_free_grid():
    grid, shift = GridLaplacian(5, 7), list(torus_shifts(5, 7))[8]
    assert equivariance_error(grid, torch.randn(2, 35), on_nodes(shift, 5, 7)) > 0.01


def test_a_rotated_rectangle_is_the_grid_with_swapped_sides():
    y = torch.randn(3, 4, 6)
    rotated_first = GridLaplacian(6, 4)(torch.rot90(y, 1, (1, 2)).flatten(1)).reshape(3, 6, 4)
    rotated_last = torch.rot90(GridLaplacian(4, 6)(y.flatten(1)).reshape(3, 4, 6), 1, (1, 2))
    assert torch.equal(rotated_first, rotated_last)


def test_a_large_image_needs_no_matrix():
    """A dense matrix for a 512 x 512 grid would take 550 GB in float64."""
    grid = GridLaplacian(512, 512)
    assert torch.isfinite(grid(torch.rand(2, 512 * 512))).all()


def test_the_square_root_of_the_degrees_is_harmonic():
    for boundary in ("free", "torus"):
        degree = torch.from_numpy(grid_adjacency(4, 6, 8, boundary).sum(0))
        assert GridLaplacian(4, 6, boundary=boundary)(degree.sqrt()).abs().max() < 1e-14


def test_the_constants_of_the_stencil_are_public():
    free, torus, narrow = (
        GridLaplacian(4, 5),
        GridLaplacian(4, 5, boundary="torus"),
        GridLaplacian(2, 5, boundary="torus"),
    )
    degree = torch.from_numpy(grid_adjacency(4, 5, 8, "free").sum(0)).reshape(4, 5)
    torch.testing.assert_close(free.inverse_sqrt_degree, degree.rsqrt(), rtol=0, atol=1e-15)
    assert [(grid.wraps_rows, grid.wraps_columns) for grid in (free, torus, narrow)] == [
        (False, False),
        (True, True),
        (False, True),
    ]


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ({"height": 0, "width": 5}, ["2 pixels", "0 x 5"]),
        ({"height": 1, "width": 1}, ["2 pixels", "1 x 1"]),
        ({"neighbours": 6}, ["neighbours", "4 or 8", "6"]),
        ({"boundary": "wrap"}, ["boundary", "'free' or 'torus'", "'wrap'"]),
        ({"diagonal": -1.0}, ["diagonal", "positive", "-1.0", "neighbours=4"]),
        ({"diagonal": float("nan")}, ["diagonal", "positive", "nan", "neighbours=4"]),
    ],
)
def test_errors_name_the_option_and_its_value(arguments, values, without_shape_checks):
    with pytest.raises(ValueError, match=".*".join(map(re.escape, values))):
        GridLaplacian(**({"height": 4, "width": 4} | arguments))


def test_repr_shows_the_options():
    assert repr(GridLaplacian(2, 3, 4, "torus")) == "GridLaplacian(2, 3, neighbours=4, boundary='torus')"
    assert repr(GridLaplacian(2, 3, diagonal=0.25)).endswith("boundary='free', diagonal=0.25)")
    assert GridLaplacian(2, 3).num_nodes == 6


@pytest.mark.parametrize(
    ("diagonal", "minimum", "maximum"), [(ISOTROPIC, 0.005, 0.0065), (1.0, 0.17, 0.18), (0.25, 0.02, 0.03)]
)
def test_how_much_the_eigenvalue_of_a_wave_depends_on_its_direction(diagonal, minimum, maximum):
    """Far from the border a plane wave is an eigenvector. Its eigenvalue should depend on its length only."""
    grid, axis = GridLaplacian(7, 7, diagonal=diagonal), torch.arange(7, dtype=torch.float64) - 3
    largest_difference = 0.0
    for wave in (3, 4, 6, 10):
        eigenvalues = []
        for degrees in range(0, 46, 5):
            angle = torch.tensor(np.radians(degrees))
            y = torch.cos(2 * torch.pi / wave * (axis * angle.cos() + axis[:, None] * angle.sin()))
            eigenvalues.append(grid(y.flatten())[24])  # at the centre, where the wave equals 1
        largest_difference = max(largest_difference, float(max(eigenvalues) - min(eigenvalues)))
    assert minimum < largest_difference < maximum


# Image gradients.


def correlate(image, stencil, boundary):
    """Apply a stencil pixel by pixel. Outside a free border the nearest pixel is read."""
    height, width = image.shape
    result = torch.zeros_like(image)
    for r in range(height):
        for c in range(width):
            for (i, j), weight in np.ndenumerate(stencil):
                row, column = r + i - 1, c + j - 1
                if boundary == "torus" and height > 2:
                    row %= height
                if boundary == "torus" and width > 2:
                    column %= width
                result[r, c] += weight * image[min(max(row, 0), height - 1), min(max(column, 0), width - 1)]
    return result


SCHARR = np.array([[-3, 0, 3], [-10, 0, 10], [-3, 0, 3]]) / 32


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("size", [(5, 5), (4, 7), (1, 6), (6, 1), (2, 5), (2, 2)])
def test_the_gradient_is_the_scharr_stencil_and_the_second_gradient_applies_it_twice(size, boundary):
    grid, image = GridLaplacian(*size, boundary=boundary), torch.rand(size, dtype=torch.float64)
    d_x, d_y = (lambda f: correlate(f, SCHARR, boundary)), (lambda f: correlate(f, SCHARR.T, boundary))
    for actual, expected in zip(grid.gradient(image.flatten()), (d_x(image), d_y(image)), strict=True):
        torch.testing.assert_close(actual, expected.flatten(), rtol=0, atol=1e-15)
    second = d_x(d_x(image)) - d_y(d_y(image)), d_x(d_y(image)) + d_y(d_x(image))
    for actual, expected in zip(grid.second_gradient(image.flatten()), second, strict=True):
        torch.testing.assert_close(actual, expected.flatten(), rtol=0, atol=1e-15)


def test_gradients_of_quadratic_images_are_exact_away_from_the_border():
    y, x = torch.meshgrid(torch.arange(9.0), torch.arange(11.0), indexing="ij")
    image = (2 + 3 * x - y + 0.5 * x**2 - 2 * x * y + 0.25 * y**2).double()
    grid, inner = GridLaplacian(9, 11), (slice(2, -2), slice(2, -2))
    first, second = grid.gradient(image.flatten()), grid.second_gradient(image.flatten())
    exact = (3 + x - 2 * y, -1 - 2 * x + 0.5 * y, torch.full_like(x, 1 - 0.5), torch.full_like(x, 2 * -2.0))
    for actual, expected in zip((*first, *second), exact, strict=True):
        torch.testing.assert_close(actual.reshape(9, 11)[inner], expected.double()[inner], rtol=0, atol=1e-12)


def test_a_constant_has_no_gradient_anywhere():
    for boundary in ("free", "torus"):
        grid = GridLaplacian(4, 6, boundary=boundary)
        components = (*grid.gradient(torch.ones(24)), *grid.second_gradient(torch.ones(24)))
        assert all((component == 0).all() for component in components)


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_gradients_rotate_and_reflect_with_the_image_bit_for_bit(boundary):
    grid, y = GridLaplacian(9, 9, boundary=boundary), torch.randn(4, 81)
    for name, transform in SQUARE.items():
        quarter_turns, reflected = int(name.split()[0]) // 90, "reflected" in name
        move = on_nodes(transform, 9, 9)
        for order, gradient in ((1, grid.gradient), (2, grid.second_gradient)):
            a, b = map(move, gradient(y))
            for _ in range(quarter_turns):
                a, b = (b, -a) if order == 1 else (-a, -b)
            if reflected:
                a, b = (-a, b) if order == 1 else (a, -b)
            for actual, expected in zip(gradient(move(y)), (a, b), strict=True):
                assert torch.equal(actual, expected), (name, order)


def test_gradients_shift_with_the_image_on_the_torus_bit_for_bit():
    grid, y = GridLaplacian(5, 7, boundary="torus"), torch.randn(2, 35)
    for shift in torus_shifts(5, 7):
        for component in range(2):
            for gradient in (grid.gradient, grid.second_gradient):
                error = equivariance_error(lambda y, g=gradient, c=component: g(y)[c], y, on_nodes(shift, 5, 7))
                assert error == 0


@pytest.mark.parametrize("wave", [4, 6, 10])
def test_the_direction_of_a_wave_is_correct_within_half_a_degree(wave):
    grid, axis = GridLaplacian(21, 21), torch.arange(21, dtype=torch.float64) - 10
    for degrees in range(0, 360, 7):
        angle = torch.tensor(np.radians(degrees))
        phase = 2 * torch.pi / wave * (axis * angle.cos() + axis[:, None] * angle.sin())
        for order, gradient, image in ((1, grid.gradient, phase.sin()), (2, grid.second_gradient, -phase.cos())):
            a, b = (component[220] for component in gradient(image.flatten()))  # at the centre
            error = torch.atan2(b, a) - order * angle
            assert torch.atan2(error.sin(), error.cos()).abs().rad2deg() / order < 0.5


def test_gradients_are_differentiable():
    grid = GridLaplacian(3, 4)
    assert torch.autograd.gradcheck(grid.second_gradient, torch.rand(12, dtype=torch.float64, requires_grad=True))
