"""The frequency responses of the filters of a spectral convolution."""

import numpy as np
import torch
from matplotlib.axes import Axes

from tigranet.graphs.grid import GridLaplacian
from tigranet.layers.spectral_conv import SpectralConv

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Line colours that colour-blind readers can distinguish."""
DASHES = ("-", "--", "-.", ":")
"""Line styles. The next one is used when all colours have been used once."""


def draw_filters(axes: Axes, conv: SpectralConv, end: float) -> None:
    r"""Draw the frequency response of every filter of a spectral convolution.

    Filter i has the response

    .. math:: \hat h_i(\lambda) = \sum_m \alpha_{i,m} \lambda^m.

    Args:
        axes: Axes to draw on.
        conv: The spectral convolution.
        end: Right end of the horizontal axis, usually the largest eigenvalue of the graph Laplacian.
    """
    lam = np.linspace(0, end, 200)
    alpha = conv.alpha.detach().double().cpu().numpy()
    for number, coefficients in enumerate(alpha):
        colour, dashes = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        axes.plot(lam, np.polynomial.polynomial.polyval(lam, coefficients), dashes, color=colour, linewidth=1.4)
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlabel="eigenvalue of the Laplacian", ylabel="filter response", xlim=(0, end))
    axes.spines[["top", "right"]].set_visible(False)


def largest_eigenvalue(graph: GridLaplacian) -> float:
    """Compute the largest eigenvalue of the Laplacian of a grid by power iteration.

    The iteration starts from stripes, which are close to the eigenvector.

    Args:
        graph: The Laplacian.

    Returns:
        The largest eigenvalue.
    """
    rows, columns = torch.meshgrid(torch.arange(graph.height), torch.arange(graph.width), indexing="ij")
    y = (1.0 - 2.0 * (rows % 2)).double().flatten() + 0.1 * (1.0 - 2.0 * (columns % 2)).double().flatten()
    for _ in range(200):
        y = graph(y)
        y = y / y.norm()
    return float(y @ graph(y))
