import pytest
import torch

from oracles import GRIDS
from tigranet import GridLaplacian
from tigranet.ops.cuda.grid_constants import grid_macros, inverse_root_degree, real_type
from tigranet.ops.grid_spec import GridSpec


@pytest.mark.parametrize("grid", GRIDS)
def test_the_scale_is_that_of_the_laplacian(grid):
    laplacian = GridLaplacian(*grid)
    scale = inverse_root_degree(GridSpec.of(laplacian), torch.float64, torch.device("cpu"))
    degree = 1 / scale.flatten() ** 2
    adjacency = (torch.eye(laplacian.num_nodes, dtype=torch.float64) - laplacian.to_dense().double()) * torch.outer(
        degree, degree
    ).sqrt()
    torch.testing.assert_close(adjacency.sum(-1), degree)


def test_axes_of_one_or_two_pixels_do_not_wrap():
    macros = grid_macros(GridSpec(2, 5, 8, True, 0.3), torch.float64)
    assert macros == {
        "REAL": "double", "EIGHT": 1, "UNIFORM": 0, "DIAGONAL": "0.3", "WRAP_ROWS": 0, "WRAP_COLUMNS": 1,
    }  # fmt: skip


def test_types_have_their_names_in_c():
    assert (real_type(torch.float32), real_type(torch.float64)) == ("float", "double")
