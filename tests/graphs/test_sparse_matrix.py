import pytest
import torch

from tigranet.graphs.sparse_matrix import coo_matrix, multiply_last_axis


def test_values_at_the_same_position_are_added():
    indices = torch.tensor([[1, 0, 1], [2, 1, 2]])
    matrix = coo_matrix(indices, torch.tensor([1.0, 2.0, 4.0]), (2, 3))
    assert matrix.to_dense().tolist() == [[0, 2, 0], [0, 0, 5]]
    assert matrix.indices().tolist() == [[0, 1], [1, 2]]


def test_an_index_out_of_range_is_rejected():
    with pytest.raises(RuntimeError, match="size"):
        coo_matrix(torch.tensor([[0], [3]]), torch.ones(1), (2, 3))


@pytest.mark.parametrize("batch", [(), (4,), (2, 3), (0,), (2, 0, 3)])
def test_the_product_is_that_of_dense_matrices(batch):
    dense = torch.rand(5, 7, dtype=torch.float64) * (torch.rand(5, 7) < 0.4)
    y = torch.rand(*batch, 7, dtype=torch.float64)
    result = multiply_last_axis(dense.to_sparse(), y)
    assert result.shape == (*batch, 5)
    torch.testing.assert_close(result, y @ dense.T, rtol=0, atol=1e-15)
