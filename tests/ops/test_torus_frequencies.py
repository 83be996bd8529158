"""The frequencies have the eigenvalues of the Laplacian, group by group."""

import numpy as np
import pytest
import torch

from tigranet import GridLaplacian
from tigranet.ops.grid_spec import GridSpec
from tigranet.ops.torus_frequencies import axis, chebyshev_values, multiply_adds, torus_frequencies

SIZES = [(3, 3), (4, 4), (5, 8), (8, 5), (6, 6), (7, 7), (34, 3)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("neighbours", "diagonal"), [(4, 1.0), (8, 1.0), (8, 0.3)])
def test_the_eigenvalues_are_those_of_the_laplacian(size, neighbours, diagonal):
    grid = GridLaplacian(*size, neighbours=neighbours, boundary="torus", diagonal=diagonal)
    frequencies = torus_frequencies(GridSpec.of(grid))
    members = torch.tensor([size for count, size in frequencies.groups for _ in range(count)])
    eigenvalues = frequencies.eigenvalues.repeat_interleave(members)
    shifted = grid.shifted(torch.eye(grid.num_nodes, dtype=torch.float64))
    torch.testing.assert_close(eigenvalues.sort()[0], torch.linalg.eigvalsh(shifted), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_the_order_is_a_permutation_and_large_groups_come_first(size):
    frequencies = torus_frequencies(GridSpec(*size, 8, True, 0.3))
    assert sorted(frequencies.order.tolist()) == list(range(size[0] * size[1]))
    sizes = [size for _, size in frequencies.groups]
    assert sizes == sorted(set(sizes), reverse=True)
    assert sum(count * size for count, size in frequencies.groups) == size[0] * size[1]
    assert sum(count for count, _ in frequencies.groups) == len(frequencies.eigenvalues)


def test_coefficients_of_a_group_follow_each_other():
    frequencies, k = torus_frequencies(GridSpec(6, 6, 8, True, 0.3)), np.array(axis(6, torch.float64).frequencies)
    pairs = np.sort(np.stack((np.repeat(k, 6), np.tile(k, 6)), 1), 1)[np.argsort(frequencies.order)]
    start = 0
    for count, size in frequencies.groups:
        for group in pairs[start : start + count * size].reshape(count, size, 2):
            assert (group == group[0]).all()
        start += count * size


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8, 33, 34, 99, 100])
def test_the_number_of_multiply_adds_is_that_of_the_matrices(n):
    basis = axis(n, torch.float32)
    assert multiply_adds(n) == len(basis.blocks) == len(basis.transposed) == np.square(basis.sizes).sum()
    assert len(basis.frequencies) == basis.sizes.sum() == n
    assert basis.blocks.dtype == np.float32


def test_the_chebyshev_polynomials_satisfy_their_recurrence():
    grid = GridSpec(5, 8, 8, True, 0.3)
    mu, t = torus_frequencies(grid).eigenvalues, chebyshev_values(grid, 4, torch.float64).unbind(1)
    torch.testing.assert_close(t[0], torch.ones_like(mu))
    torch.testing.assert_close(t[1], mu)
    for m in range(2, 5):
        torch.testing.assert_close(t[m], 2 * mu * t[m - 1] - t[m - 2])
