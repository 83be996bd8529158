import pytest
import torch

from oracles import GRIDS
from tigranet import GridLaplacian
from tigranet.ops.grid_spec import describe, flat, grid_of, in_shared, over_warps


@pytest.mark.parametrize("grid", GRIDS)
def test_a_described_grid_is_that_grid(grid):
    height, width, neighbours, boundary, diagonal = grid
    laplacian = GridLaplacian(height, width, neighbours, boundary, diagonal)
    again = grid_of(*describe(laplacian))
    assert repr(again) == repr(laplacian)
    assert torch.equal(again._constant, laplacian._constant)


@pytest.mark.parametrize("grid", GRIDS)
def test_the_flat_layout_holds_the_scale_and_zero_on_the_border(grid):
    height, width, neighbours, boundary, diagonal = grid
    laplacian = GridLaplacian(height, width, neighbours, boundary, diagonal)
    s, (*_, stride, _, _, wrap_columns), _ = flat(describe(laplacian), torch.float64)
    nodes = [(r + 1) * stride + 1 + c for r in range(height) for c in range(width)]
    assert torch.equal(torch.from_numpy(s[nodes]), laplacian._constant.flatten())
    assert (s != 0).sum() == height * width
    assert stride == width + (2 if wrap_columns else 1)
    assert nodes[-1] + stride + 1 < len(s)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("size", [(1, 7), (26, 26), (50, 50), (64, 31), (33, 64), (200, 20)])
def test_a_map_fits_its_warps(size, backward):
    held = over_warps(*size, 4, backward)
    across, bands = -(-size[1] // held.columns), held.groups * held.warps
    assert across * held.groups <= 32
    assert held.rows * bands >= size[0] > held.rows * (bands - 1)
    assert held.warps == 1 or held.maps == 1


def test_what_is_too_large_for_the_gpu_is_said():
    assert over_warps(512, 512, 4, True) is None
    assert over_warps(3, 9000, 4, False) is None
    assert in_shared(90, 90, 4)
    assert not in_shared(512, 512, 4)
