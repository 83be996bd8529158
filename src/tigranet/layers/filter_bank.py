"""The paper's starting filters: windows that cover the spectrum, fitted by polynomials (Sec. 5.1)."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

WIDTH = 1.5
"""Each window is this many times as wide as the distance between two centres (reading 10)."""


def filter_bank(num_filters: int, degree: int, span: float = 2.0) -> Float[Tensor, "filters coefficients"]:
    r"""Coefficients :math:`\alpha_{i,m}` of ``num_filters`` polynomials of degree ``degree``, each the
    least-squares fit on [0, ``span``] of one rectangular window

    .. math:: w(\lambda, a_i, b_i) = 1 \text{ if } a_i < \lambda < b_i, \text{ else } 0.

    The paper asks that windows overlap, have one size and cover [0, 2], and leaves their number and
    overlap open. Reading 10: one window a filter, centres evenly spread, each 1.5 times as wide as their
    distance. Reading 9: the spectrum of the 8-neighbour grid ends near 1.52, so ``span=1.52`` wastes no
    window; the default is [0, 2] as written.

    >>> filter_bank(3, 2).shape
    torch.Size([3, 3])
    """
    if num_filters < 1 or degree < 0 or not 0 < span <= 2:
        came = f"got {num_filters} of degree {degree} over {span}"
        raise ValueError(f"wanted at least 1 filter of degree at least 0 over a span in (0, 2], {came}")
    spacing = span / num_filters
    lam = np.linspace(0, span, 2001)
    centres = spacing * (np.arange(num_filters) + 0.5)
    windows = np.abs(lam - centres[:, None]) < WIDTH * spacing / 2
    fits = [np.polynomial.Polynomial.fit(lam, window, degree).convert().coef for window in windows.astype(float)]
    return torch.from_numpy(np.stack([np.pad(fit, (0, degree + 1 - len(fit))) for fit in fits]))
