"""Powers of L and Chebyshev polynomials, the recurrences of the network. None of them builds a matrix."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.laplacian import Laplacian


def powers(
    y: Float[Tensor, "*batch nodes"], laplacian: Laplacian, degree: int
) -> Iterator[Float[Tensor, "*batch nodes"]]:
    r"""Generate :math:`L^m y` for m = 0 .. ``degree``.

    Args:
        y: Signals on the graph.
        laplacian: The operator :math:`L`.
        degree: Largest power.

    Yields:
        The signals :math:`L^m y`, in the order of m.
    """
    yield y
    for _ in range(degree):
        y = laplacian(y)
        yield y


def chebyshev(
    y: Float[Tensor, "*batch nodes"], laplacian: Laplacian, order: int
) -> Iterator[Float[Tensor, "*batch nodes"]]:
    r"""Generate :math:`t_k = T_k(\tilde L) y` for k = 0 .. ``order``, where :math:`\tilde L = L - I`.

    .. math:: t_0 = y, \quad t_1 = \tilde L y, \quad t_k = 2 \tilde L t_{k-1} - t_{k-2}.

    Args:
        y: Signals on the graph.
        laplacian: The operator :math:`L`.
        order: Largest order.

    Yields:
        The signals :math:`t_k`, in the order of k.
    """
    previous, t = y, y
    yield t
    if order:
        t = laplacian.shifted(y)
        yield t
    for _ in range(order - 1):
        previous, t = t, 2 * laplacian.shifted(t) - previous
        yield t


def chebyshev_sum(u: Sequence[Float[Tensor, "*batch nodes"]], laplacian: Laplacian) -> Float[Tensor, "*batch nodes"]:
    r"""Compute :math:`\sum_m T_m(\tilde L) u_m` by Clenshaw's recurrence, from the last order to the first.

    .. math:: b_m = u_m + 2 \tilde L b_{m+1} - b_{m+2}, \qquad
        \sum_m T_m(\tilde L) u_m = u_0 + \tilde L b_1 - b_2 .

    Args:
        u: One signal per order.
        laplacian: The operator :math:`L`.

    Returns:
        The sum, a signal of the same shape as each :math:`u_m`.
    """
    if len(u) == 1:
        return u[0]
    b, b_next = u[-1], torch.zeros((), dtype=u[0].dtype, device=u[0].device)
    for u_m in reversed(u[1:-1]):
        b, b_next = u_m + 2 * laplacian.shifted(b) - b_next, b
    return u[0] + laplacian.shifted(b) - b_next
