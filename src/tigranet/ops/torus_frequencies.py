r"""The frequencies of maps on a torus, their order, and the eigenvalues of the Laplacian.

On a torus of height x width pixels, :math:`\tilde L = L - I` is diagonal in the basis of products of a real Fourier
basis of the rows and one of the columns (:mod:`tigranet.ops.cpu.real_fourier`). The eigenvalue of the frequencies k
and l is

.. math:: \mu_{kl} = -\frac{\cos a + \cos b + 2 d \cos a \cos b}{2 + 2 d},
    \qquad a = \frac{2 \pi k}{\mathrm{height}}, \quad b = \frac{2 \pi l}{\mathrm{width}},

with the weight d of the diagonal edges, or d = 0 for 4 neighbours. A cosine and a sine of the same frequency have the
same eigenvalue, and on a square (k, l) and (l, k) have the same one too: up to eight coefficients form a *group*.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.ops.grid_spec import GridSpec


class Axis(NamedTuple):
    """The real Fourier basis of one axis, as small matrices that multiply a folded signal."""

    frequencies: tuple[int, ...]
    """The frequency k of each coefficient, in the order of the matrices."""
    blocks: Any
    """The rows of all matrices one after the other."""
    transposed: Any
    """The rows of the transposed matrices."""
    sizes: Any
    """The number of rows of each matrix."""


@lru_cache(maxsize=64)
def axis(n: int, dtype: torch.dtype) -> Axis:
    """Return the basis of an axis.

    Args:
        n: Number of pixels.
        dtype: The type of the matrices.

    Returns:
        Two matrices for odd n, with the cosines and the sines; four for even n, with the cosines of even and of odd
        frequencies, and the sines of odd and of even ones.

    Example:
        >>> axis(6, torch.float32).frequencies
        (0, 2, 1, 3, 1, 2)
    """
    h = n // 2
    if n % 2:
        parts = [(np.cos, range(h + 1), range(h + 1)), (np.sin, range(1, h + 1), range(1, h + 1))]
    else:
        parts = [
            (np.cos, range(0, h + 1, 2), range(h // 2 + 1)),
            (np.cos, range(1, h + 1, 2), range((h + 1) // 2)),
            (np.sin, range(1, h, 2), range(1, h // 2 + 1)),
            (np.sin, range(2, h, 2), range(1, (h + 1) // 2)),
        ]
    matrices = []
    for function, frequencies, pixels in parts:
        k, j = np.array(frequencies, int)[:, None], np.array(pixels, int)
        norm = np.sqrt(np.where((k == 0) | (2 * k == n), 1, 2) / n)
        matrices.append(torch.from_numpy(norm * function(2 * np.pi * (j * k % n) / n)).to(dtype).numpy())
    return Axis(
        tuple(k for _, frequencies, _ in parts for k in frequencies),
        np.concatenate([matrix.ravel() for matrix in matrices]),
        np.concatenate([matrix.T.ravel() for matrix in matrices]),
        np.array([len(matrix) for matrix in matrices]),
    )


def multiply_adds(n: int) -> int:
    """Return how many numbers the matrices of an axis have: the work of transforming one signal along it.

    Args:
        n: Number of pixels.

    Returns:
        The number.

    Example:
        >>> multiply_adds(33), multiply_adds(34), len(axis(34, torch.float32).blocks)
        (545, 290, 290)
    """
    h = n // 2
    if n % 2:
        return (h + 1) ** 2 + h**2
    return (h // 2 + 1) ** 2 + ((h + 1) // 2) ** 2 + (h // 2) ** 2 + ((h - 1) // 2) ** 2


class TorusFrequencies(NamedTuple):
    """The order of the coefficients of a map: group by group, the large groups first."""

    order: Any
    """The place of each coefficient. Coefficient ``i * width + j`` is that of the i-th basis vector of the rows and the
    j-th of the columns."""
    groups: tuple[tuple[int, int], ...]
    """For each size of groups: the number of these groups, and their size."""
    eigenvalues: Float[Tensor, "groups"]
    """The eigenvalue of each group, in float64."""


@lru_cache(maxsize=64)
def torus_frequencies(grid: GridSpec) -> TorusFrequencies:
    """Return the order of the frequencies of a torus.

    Args:
        grid: The grid. Both axes wrap around.

    Returns:
        The order, the groups and their eigenvalues.
    """
    members: dict[tuple[int, int], list[int]] = {}
    for row, k in enumerate(axis(grid.height, torch.float64).frequencies):
        for column, other in enumerate(axis(grid.width, torch.float64).frequencies):
            pair = (min(k, other), max(k, other)) if grid.height == grid.width else (k, other)
            members.setdefault(pair, []).append(row * grid.width + column)
    pairs = sorted(members, key=lambda pair: (-len(members[pair]), pair))
    order = np.empty(grid.num_nodes, np.intp)
    order[np.concatenate([members[pair] for pair in pairs])] = np.arange(grid.num_nodes)
    sizes = [len(members[pair]) for pair in pairs]
    a, b = np.cos(2 * np.pi * np.array(pairs) / (grid.height, grid.width)).T
    d = grid.diagonal if grid.neighbours == 8 else 0.0
    return TorusFrequencies(
        order,
        tuple((sizes.count(size), size) for size in sorted(set(sizes), reverse=True)),
        torch.from_numpy(-(a + b + 2 * d * a * b) / (2 + 2 * d)),
    )


@lru_cache(maxsize=64)
def chebyshev_values(grid: GridSpec, degree: int, dtype: torch.dtype) -> Float[Tensor, "groups orders"]:
    """Return the Chebyshev polynomials of the eigenvalues of a torus.

    Args:
        grid: The grid. Both axes wrap around.
        degree: The highest order.
        dtype: The type of the result.

    Returns:
        T_0 to T_degree of the eigenvalue of each group.
    """
    orders = torch.arange(degree + 1, dtype=torch.float64)
    return (torus_frequencies(grid).eigenvalues.clamp(-1, 1).acos()[:, None] * orders).cos().to(dtype)
