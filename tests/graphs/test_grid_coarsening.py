import pytest
import torch
from torch.autograd import gradcheck

from tigranet import GridLaplacian
from tigranet.testing import SQUARE, equivariance_error, on_nodes, torus_shift

BOUNDARIES = ["free", "torus"]


def coarsen(images, boundary="free"):
    """Coarsen images (..., height, width) of any size."""
    coarsening = GridLaplacian(*images.shape[-2:], boundary=boundary).coarsening
    coarse = coarsening.laplacian
    return coarsening(images.flatten(-2)).unflatten(-1, (coarse.height, coarse.width))


def taps(length, wraps):
    """The filter along one axis as a matrix, from its definition."""
    matrix = torch.zeros(-(-length // 2), length, dtype=torch.float64)
    offsets, weights = ((-1, 0, 1, 2), (1, 3, 3, 1)) if length % 2 == 0 else ((-1, 0, 1), (1, 2, 1))
    for k in range(len(matrix)):
        for offset, weight in zip(offsets, weights, strict=True):
            position = 2 * k + offset
            position = position % length if wraps else min(max(position, 0), length - 1)
            matrix[k, position] += weight / sum(weights)
    return matrix


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("height", "width"), [(3, 3), (4, 7), (8, 6), (1, 9), (5, 2), (13, 12), (2, 3)])
def test_the_filter_is_the_separable_one_of_the_docstring(height, width, boundary):
    image = torch.randn(height, width, dtype=torch.float64)
    down, right = (taps(length, boundary == "torus" and length > 2) for length in (height, width))
    torch.testing.assert_close(coarsen(image, boundary), down @ image @ right.T)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_rotating_and_coarsening_commute_for_all_sizes(boundary):
    for height in range(2, 41):
        width = height % 7 + 2 if height % 3 else height
        if max(height, width) < 3:
            continue
        image = torch.randn(1, 2, height, width, dtype=torch.float64)
        for move in SQUARE.values():
            assert equivariance_error(lambda x: coarsen(x, boundary), image, move) < 1e-14, (height, width)


def test_even_shifts_on_the_torus_are_exact():
    for height, width in [(8, 8), (6, 10), (4, 12)]:
        image = torch.randn(1, 1, height, width, dtype=torch.float64)
        for down, right in [(2, 0), (0, 4), (2, -2), (height - 2, 2)]:
            moved = torus_shift(down // 2, right // 2)(coarsen(image, "torus"))
            torch.testing.assert_close(coarsen(torus_shift(down, right)(image), "torus"), moved, rtol=0, atol=1e-15)


def test_two_levels_are_exact_for_shifts_by_four():
    image = torch.randn(1, 1, 16, 8, dtype=torch.float64)
    twice = coarsen(coarsen(image, "torus"), "torus")
    shifted = coarsen(coarsen(torus_shift(4, -4)(image), "torus"), "torus")
    torch.testing.assert_close(shifted, torus_shift(1, -1)(twice), rtol=0, atol=1e-15)


def test_smooth_images_are_coarsened_to_their_values_at_the_coarse_pixels():
    x = torch.arange(33, dtype=torch.float64)
    plane = 2 + 3 * x[:, None] - 0.5 * x[None, :]
    torch.testing.assert_close(coarsen(plane)[1:-1, 1:-1], plane[::2, ::2][1:-1, 1:-1])
    even = plane[:32, :32]
    expected = (even[::2, ::2] + even[1::2, 1::2]) / 2
    torch.testing.assert_close(coarsen(even)[1:-1, 1:-1], expected[1:-1, 1:-1])


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("height", "width"), [(4, 5), (3, 8)])
def test_constants_stay_and_gradients_are_right(height, width, boundary):
    coarsening = GridLaplacian(height, width, boundary=boundary).coarsening
    torch.testing.assert_close(
        coarsening(torch.full((2, height * width), 0.3)),
        torch.full((1, 1), 0.3).expand(2, coarsening.laplacian.num_nodes),
    )
    assert gradcheck(coarsening, torch.randn(2, 3, height * width, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_any_precision_and_any_number_of_axes(dtype):
    coarsening = GridLaplacian(6, 4).coarsening
    y = torch.rand(2, 3, 24, dtype=dtype)
    assert coarsening(y).dtype == dtype
    torch.testing.assert_close(coarsening(y)[1, 2], coarsening(y[1, 2]))
    torch.testing.assert_close(coarsening(y[None])[0], coarsening(y))


def test_a_coarse_node_is_of_interest_if_the_filter_reaches_one():
    coarsening = GridLaplacian(4, 4).coarsening
    omega = torch.zeros(1, 1, 16, dtype=torch.bool)
    assert not coarsening.nodes(omega).any()
    omega[0, 0, 0] = True
    assert coarsening.nodes(omega).flatten().tolist() == [True, False, False, False]


def test_the_coarse_grid_has_the_options_of_the_fine_grid():
    grid = GridLaplacian(9, 6, neighbours=8, boundary="torus", diagonal=0.3)
    coarse = grid.coarsening.laplacian
    assert repr(coarse) == "GridLaplacian(5, 3, neighbours=8, boundary='torus', diagonal=0.3)"
    assert grid.coarsening is grid.coarsening


@pytest.mark.parametrize(("height", "width"), [(2, 2), (1, 2), (2, 1)])
def test_a_grid_that_is_too_small_is_an_error(height, width):
    with pytest.raises(ValueError, match=f"{height} x {width}"):
        _ = GridLaplacian(height, width).coarsening


def test_signals_of_another_size_are_an_error():
    with pytest.raises(ValueError, match=r"\(2, 5\)"):
        GridLaplacian(2, 3).coarsening(torch.rand(2, 5))


def test_on_nodes_agrees_with_images():
    grid = GridLaplacian(8, 8)
    y = torch.rand(2, 3, 64)
    for move in SQUARE.values():
        error = equivariance_error(grid.coarsening, y, on_nodes(move, 8, 8), on_nodes(move, 4, 4))
        assert error < 1e-6


def test_batches_without_images():
    coarsening = GridLaplacian(6, 5).coarsening
    assert coarsening(torch.rand(0, 4, 30)).shape == (0, 4, 9)
    assert coarsening.nodes(torch.rand(0, 1, 30) > 0).shape == (0, 1, 9)
