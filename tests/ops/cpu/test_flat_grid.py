import pytest
import torch

from oracles import GRIDS
from tigranet import GridLaplacian
from tigranet.ops.cpu.flat_grid import flat_grid
from tigranet.ops.grid_spec import GridSpec


@pytest.mark.parametrize("grid", GRIDS)
def test_the_flat_layout_holds_the_scale_and_zero_on_the_border(grid):
    height, width, *_ = grid
    laplacian = GridLaplacian(*grid)
    s, (*_, stride, _, _, wrap_columns), _ = flat_grid(GridSpec.of(laplacian), torch.float64)
    nodes = [(r + 1) * stride + 1 + c for r in range(height) for c in range(width)]
    assert torch.equal(torch.from_numpy(s[nodes]), laplacian.inverse_sqrt_degree.flatten())
    assert (s != 0).sum() == height * width
    assert stride == width + (2 if wrap_columns else 1)
    assert nodes[-1] + stride + 1 < len(s)


@pytest.mark.parametrize("grid", GRIDS)
def test_on_the_torus_the_scale_is_the_same_at_all_nodes(grid):
    s, (*_, wrap_rows, wrap_columns), _ = flat_grid(GridSpec.of(GridLaplacian(*grid)), torch.float32)
    if wrap_rows and wrap_columns:
        assert len(set(s[s != 0].tolist())) == 1
