"""Coarsening on the pixel grid: the fused version agrees with the reference, and its gradient is its adjoint."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tigranet import GridLaplacian, SparseLaplacian
from tigranet.ops import coarsen, using
from tigranet.testing import SQUARE, equivariance_error, on_nodes

TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-14}
SIZES = [(3, 3), (4, 4), (4, 7), (8, 6), (1, 9), (5, 2), (2, 3), (13, 12), (64, 33)]
BOUNDARIES = ["free", "torus"]


def pixel_by_pixel(y):
    return y.transpose(1, 2).contiguous().transpose(1, 2)


def run(mode, y, grid, g):
    y = y.detach().requires_grad_()
    with using(mode):
        z = coarsen(y, grid)
        return z.detach(), *torch.autograd.grad(z, y, g)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_result_and_gradient_agree_with_the_reference(height, width, boundary, dtype):
    grid = GridLaplacian(height, width, boundary=boundary)
    coarse_nodes = grid.coarsening.laplacian.num_nodes
    for batch, maps in [(1, 1), (2, 3), (3, 32)]:
        y = pixel_by_pixel(torch.randn(batch, maps, height * width, dtype=dtype))
        for g in (torch.randn(batch, maps, coarse_nodes, dtype=dtype), torch.ones((), dtype=dtype)):
            g = g.expand(batch, maps, coarse_nodes)
            for actual, expected in zip(run("fused", y, grid, g), run("plain", y, grid, g), strict=True):
                torch.testing.assert_close(actual, expected, rtol=0, atol=TOLERANCE[dtype] * 10)
        assert maps == 1 or run("fused", y, grid, g)[0].stride(1) == 1


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_maps_that_are_stored_one_after_the_other_give_such_maps(height, width, boundary):
    grid = GridLaplacian(height, width, boundary=boundary)
    y, g = torch.randn(2, 3, height * width), torch.randn(2, 3, grid.coarsening.laplacian.num_nodes)
    fused = run("fused", y, grid, g)
    for actual, expected in zip(fused, run("plain", y, grid, g), strict=True):
        torch.testing.assert_close(actual, expected, rtol=0, atol=TOLERANCE[torch.float32] * 10)
        assert actual.is_contiguous()
    by_pixel = run("fused", pixel_by_pixel(y), grid, pixel_by_pixel(g))
    assert all(torch.equal(a, b) for a, b in zip(fused, by_pixel, strict=True))


def test_batches_without_images_and_maps_in_other_layouts():
    grid = GridLaplacian(6, 5)
    with using("fused"):
        assert coarsen(torch.rand(0, 4, 30), grid).shape == (0, 4, 9)
        y = torch.rand(2, 8, 30)
        torch.testing.assert_close(coarsen(y, grid), grid.coarsening(y))
        every_second = pixel_by_pixel(y)[:, ::2]
        torch.testing.assert_close(coarsen(every_second, grid), grid.coarsening(y[:, ::2]))
        rows = torch.rand(2, 90, 8)[:, ::3].transpose(1, 2)
        torch.testing.assert_close(coarsen(rows, grid), grid.coarsening(rows.contiguous()))


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("height", "width"), [(3, 4), (5, 2)])
def test_gradients_of_both_orders(height, width, boundary):
    grid = GridLaplacian(height, width, boundary=boundary)
    y = pixel_by_pixel(torch.randn(1, 3, height * width, dtype=torch.float64)).requires_grad_()
    with using("fused"):
        assert gradcheck(lambda y: coarsen(y, grid) ** 2, y)
        assert gradgradcheck(lambda y: coarsen(y, grid) ** 2, y)


def test_quarter_turns_and_reflections():
    grid, y = GridLaplacian(9, 9), pixel_by_pixel(torch.randn(1, 4, 81, dtype=torch.float64))
    with using("fused"):
        for move in SQUARE.values():
            error = equivariance_error(
                lambda y: coarsen(pixel_by_pixel(y), grid), y, on_nodes(move, 9, 9), on_nodes(move, 5, 5)
            )
            assert error < 1e-14


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_nan_or_infinity_reaches_the_same_pixels_as_in_the_reference(value):
    grid, y, g = GridLaplacian(7, 6), pixel_by_pixel(torch.rand(1, 2, 42)), torch.rand(1, 2, 12)
    y[0, 1, 0] = y[0, 0, 20] = g[0, 0, 0] = g[0, 1, 7] = value
    for actual, expected in zip(run("fused", y, grid, g), run("plain", y, grid, g), strict=True):
        assert torch.equal(actual.isfinite(), expected.isfinite())


def test_other_precisions_and_graphs_use_the_reference():
    grid, y = GridLaplacian(6, 6), pixel_by_pixel(torch.rand(2, 4, 36))
    torch.testing.assert_close(coarsen(y.bfloat16(), grid).float(), coarsen(y, grid), rtol=0.02, atol=0.02)
    path = SparseLaplacian([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    torch.testing.assert_close(coarsen(y[..., :3], path), path.coarsening(y[..., :3]))


def test_a_grid_that_is_too_small_is_an_error():
    with pytest.raises(ValueError, match="2 x 2"):
        coarsen(pixel_by_pixel(torch.rand(1, 3, 4)), GridLaplacian(2, 2))


def test_the_operators_pass_the_checks_of_pytorch():
    y, grid = pixel_by_pixel(torch.rand(2, 3, 20)).requires_grad_(), (4, 5, 8, False, 1.0)
    torch.library.opcheck(torch.ops.tigranet.coarsen.default, (y, *grid))
    torch.library.opcheck(torch.ops.tigranet.coarsen.default, (torch.rand(2, 3, 20).requires_grad_(), *grid))
    torch.library.opcheck(torch.ops.tigranet.coarsen_backward.default, (pixel_by_pixel(torch.rand(2, 3, 6)), *grid))
