import pytest
import torch

from oracles import GRIDS
from tigranet import GridLaplacian
from tigranet.ops.grid_spec import GridSpec


@pytest.mark.parametrize("grid", GRIDS)
def test_the_laplacian_of_a_description_is_the_described_one(grid):
    laplacian = GridLaplacian(*grid)
    spec = GridSpec.of(laplacian)
    assert repr(spec.laplacian) == repr(laplacian)
    assert torch.equal(spec.laplacian.inverse_sqrt_degree, laplacian.inverse_sqrt_degree)
    assert spec.num_nodes == laplacian.num_nodes
    assert (spec.wraps_rows, spec.wraps_columns) == (laplacian.wraps_rows, laplacian.wraps_columns)


def test_equal_grids_share_one_laplacian():
    assert GridSpec(4, 5, 8, False, 1.0).laplacian is GridSpec.of(GridLaplacian(4, 5)).laplacian
