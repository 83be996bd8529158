"""Sparse matrices in coordinate format, and their product with signals."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def coo_matrix(
    indices: Int[Tensor, "2 entries"], values: Float[Tensor, " entries"], shape: tuple[int, int]
) -> Float[Tensor, "rows columns"]:
    """Build a sparse matrix. Values with the same position are added.

    Args:
        indices: Row and column of each value.
        values: The values.
        shape: Number of rows and of columns.

    Returns:
        The matrix in coordinate (COO) format, in the dtype of ``values``, sorted by row and column.

    Raises:
        RuntimeError: If an index is out of range.
    """
    with torch.sparse.check_sparse_tensor_invariants():
        return torch.sparse_coo_tensor(indices, values, shape).coalesce()


def multiply_last_axis(
    matrix: Float[Tensor, "rows columns"], y: Float[Tensor, "*batch columns"]
) -> Float[Tensor, "*batch rows"]:
    """Multiply a sparse matrix with vectors that lie along the last axis.

    Args:
        matrix: The sparse matrix, in the dtype and on the device of ``y``.
        y: The vectors.

    Returns:
        The products.

    Shape:
        ``(rows, columns), (*batch, columns) -> (*batch, rows)``
    """
    rows, columns = matrix.shape
    return torch.sparse.mm(matrix, y.reshape(-1, columns).T).T.reshape(*y.shape[:-1], rows)
