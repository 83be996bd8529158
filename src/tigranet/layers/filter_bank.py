"""The paper's initial filters: windows that cover the spectrum, approximated by polynomials (Sec. 5.1)."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

RELATIVE_WIDTH = 1.5
"""Width of a window as a multiple of the distance between two centres (reading 10)."""


def filter_bank(num_filters: int, degree: int, span: float = 2.0) -> Float[Tensor, "filters coefficients"]:
    r"""Return the coefficients :math:`\alpha_{i,m}` of a bank of polynomial filters.

    Each polynomial is the least-squares fit on [0, ``span``] of one rectangular window

    .. math:: w(\lambda, a_i, b_i) = 1 \text{ if } a_i < \lambda < b_i, \text{ else } 0.

    The paper requires that the windows overlap, have the same size and cover [0, 2]. It leaves their number and
    overlap open. Reading 10: one window per filter, centres evenly spaced, each window 1.5 times as wide as the
    distance between centres. Reading 9: the spectrum of the 8-neighbour grid ends near 1.52, so ``span=1.52`` wastes no
    window; the default is [0, 2] as in the paper.

    Args:
        num_filters: The number of filters.
        degree: The degree of the polynomials.
        span: The end of the interval that the windows cover.

    Returns:
        One row of degree + 1 coefficients per filter, from power 0 on, in float64.

    Raises:
        ValueError: If there is no filter, the degree is negative, or the span is not in (0, 2].

    Example:
        >>> filter_bank(3, 2).shape
        torch.Size([3, 3])
    """
    if num_filters < 1 or degree < 0 or not 0 < span <= 2:
        raise ValueError(
            "expected at least 1 filter of degree at least 0 over a span in (0, 2], "
            f"got {num_filters} of degree {degree} over {span}"
        )
    spacing = span / num_filters
    lam = np.linspace(0, span, 2001)
    centres = spacing * (np.arange(num_filters) + 0.5)
    windows = np.abs(lam - centres[:, None]) < RELATIVE_WIDTH * spacing / 2
    fits = [np.polynomial.Polynomial.fit(lam, window, degree).convert().coef for window in windows.astype(float)]
    return torch.from_numpy(np.stack([np.pad(fit, (0, degree + 1 - len(fit))) for fit in fits]))
