"""The recurrences the network is made of, all matrix-free: powers of L and Chebyshev polynomials."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.laplacian import Laplacian


def powers(
    y: Float[Tensor, "*batch nodes"], laplacian: Laplacian, degree: int
) -> Iterator[Float[Tensor, "*batch nodes"]]:
    r""":math:`L^m y` for m = 0 .. ``degree``, one after the other."""
    yield y
    for _ in range(degree):
        y = laplacian(y)
        yield y


def chebyshev(
    y: Float[Tensor, "*batch nodes"], laplacian: Laplacian, order: int
) -> Iterator[Float[Tensor, "*batch nodes"]]:
    r""":math:`t_k = T_k(\tilde L) y` for k = 0 .. ``order``, where :math:`\tilde L = L - I` and

    .. math:: t_0 = y, \quad t_1 = \tilde L y, \quad t_k = 2 \tilde L t_{k-1} - t_{k-2}.
    """
    before, t = y, y
    yield t
    if order:
        t = laplacian.shifted(y)
        yield t
    for _ in range(order - 1):
        before, t = t, 2 * laplacian.shifted(t) - before
        yield t


def chebyshev_sum(u: Sequence[Float[Tensor, "*batch nodes"]], laplacian: Laplacian) -> Float[Tensor, "*batch nodes"]:
    r""":math:`\sum_m T_m(\tilde L) u_m`, one signal for each order: Clenshaw's recurrence, from the last to the first,

    .. math:: b_m = u_m + 2 \tilde L b_{m+1} - b_{m+2}, \qquad
        \sum_m T_m(\tilde L) u_m = u_0 + \tilde L b_1 - b_2 .
    """
    if len(u) == 1:
        return u[0]
    b, after = u[-1], torch.zeros((), dtype=u[0].dtype, device=u[0].device)
    for u_m in reversed(u[1:-1]):
        b, after = u_m + 2 * laplacian.shifted(b) - after, b
    return u[0] + laplacian.shifted(b) - after
