"""The portable grid computes the functions of GridLaplacian on images."""

import pytest
import torch

from tigranet import GridLaplacian
from tigranet.export.portable_grid import GridOptions, PortableGrid, Stencils

SHAPES = (1, 2), (1, 5), (2, 2), (2, 7), (3, 3), (4, 5), (7, 6)


def grids(shape, boundary="free", neighbours=8, diagonal=0.3):
    """The two grids of a shape, and maps on them."""
    maps = torch.rand(2, 3, *shape)
    stencils = Stencils(GridOptions(neighbours, boundary, diagonal))
    return GridLaplacian(*shape, neighbours, boundary, diagonal), PortableGrid(stencils, maps), maps


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize(("neighbours", "diagonal"), [(8, 0.3), (8, 1.0), (4, 1.0)])
def test_the_laplacian(shape, boundary, neighbours, diagonal):
    laplacian, grid, maps = grids(shape, boundary, neighbours, diagonal)
    expected = laplacian.shifted(maps.flatten(2)).unflatten(2, shape)
    torch.testing.assert_close(grid.shifted(maps), expected)
    assert torch.equal(grid.symmetric_shifted(maps), expected)  # in every bit
    torch.testing.assert_close(grid.neighbour_sum(maps, -1), -grid.symmetric_neighbour_sum(maps))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_gradients_and_their_products(shape, boundary):
    laplacian, grid, maps = grids(shape, boundary)
    signals = maps.flatten(2)
    first, second = grid.gradient(maps), grid.twist(grid.gradient(maps))
    for actual, expected in zip(
        (*first, *second), (*laplacian.gradient(signals), *laplacian.second_gradient(signals)), strict=True
    ):
        torch.testing.assert_close(actual.flatten(2), expected)
    others = torch.rand_like(maps)
    expected = laplacian.carre_du_champ(signals, others.flatten(2))
    torch.testing.assert_close(grid.product_of_gradients(maps, others).flatten(2), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 3), (4, 4), (3, 4), (6, 5), (1, 3), (2, 8), (9, 2)])
@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_coarsening_for_every_parity(shape, boundary):
    laplacian, grid, maps = grids(shape, boundary)
    expected = laplacian.coarsening(maps.flatten(2))
    torch.testing.assert_close(grid.coarsen(maps).flatten(2), expected)
    omega = maps[:, :1] > 0.8
    assert torch.equal(grid.coarsen_nodes(omega).flatten(2), laplacian.coarsening.nodes(omega.flatten(2)))


@pytest.mark.parametrize("border", [0, 1, 3])
@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("shape", [(2, 3), (4, 5)])
def test_padding(shape, boundary, border):
    laplacian, grid, maps = grids(shape, boundary)
    assert torch.equal(grid.pad(maps, border), laplacian.pad(maps, border))
