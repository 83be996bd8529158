"""Sums on a torus agree with the reference, and shifts and quarter turns are exact: all columns have the same bits."""

import pytest
import torch

from tigranet import GridLaplacian
from tigranet.ops import chebyshev_sum, using

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13}


@pytest.mark.parametrize("size", [(3, 3), (3, 8), (5, 17), (34, 34), (16, 3)])
@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shifts_and_quarter_turns_are_exact(size, neighbours, dtype):
    grid, turned = (
        GridLaplacian(*shape, neighbours=neighbours, boundary="torus", diagonal=0.3 if neighbours == 8 else 1.0)
        for shape in (size, size[::-1])
    )
    for degree in range(6):
        u = torch.randn(2, 3 * (degree + 1), *size, dtype=dtype)
        z = summed(u, grid, degree)
        torch.testing.assert_close(
            z, chebyshev_sum.reference(u.flatten(2), grid, degree).view_as(z), rtol=0, atol=20 * TOLERANCE[dtype]
        )
        assert torch.equal(summed(u.roll((1, 2), (2, 3)), grid, degree), z.roll((1, 2), (2, 3)))
        assert torch.equal(summed(u.rot90(1, (2, 3)), turned, degree), z.rot90(1, (2, 3)))


def summed(u, grid, degree):
    with using("fused"):
        return chebyshev_sum(u.flatten(2).contiguous(), grid, degree).unflatten(2, u.shape[2:])


def test_a_map_that_is_not_finite_does_not_change_the_others():
    grid, u = GridLaplacian(5, 6, boundary="torus"), torch.randn(2, 12, 30)
    with using("fused"):
        expected = chebyshev_sum(u, grid, 3)
        u[0, 1::3] = torch.nan
        actual = chebyshev_sum(u, grid, 3)
    assert actual[0, 1].isnan().all()
    assert torch.equal(actual[0, ::2], expected[0, ::2])
    assert torch.equal(actual[1], expected[1])
