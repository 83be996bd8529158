"""The filters of a spectral convolution, over the spectrum of the graph."""

import numpy as np
import torch
from matplotlib.axes import Axes

from tigranet.graphs.grid import GridLaplacian
from tigranet.layers.spectral_conv import SpectralConv

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")  # told apart by all readers
STYLES = ("-", "--", "-.", ":")


def draw_filters(axes: Axes, conv: SpectralConv, end: float) -> None:
    r""":math:`\hat h_i(\lambda) = \sum_m \alpha_{i,m} \lambda^m` of every filter i, from 0 to ``end``."""
    lam = np.linspace(0, end, 200)
    alpha = conv.alpha.detach().double().cpu().numpy()
    for number, coefficients in enumerate(alpha):
        colour, style = COLOURS[number % len(COLOURS)], STYLES[number // len(COLOURS) % len(STYLES)]
        axes.plot(lam, np.polynomial.polynomial.polyval(lam, coefficients), style, color=colour, linewidth=1.4)
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlabel="eigenvalue", ylabel="response", xlim=(0, end))
    axes.spines[["top", "right"]].set_visible(False)


def end_of_spectrum(graph: GridLaplacian) -> float:
    """The largest eigenvalue, by power iteration from stripes, which are near to its eigenvector."""
    rows, columns = torch.meshgrid(torch.arange(graph.height), torch.arange(graph.width), indexing="ij")
    y = (1.0 - 2.0 * (rows % 2)).double().flatten() + 0.1 * (1.0 - 2.0 * (columns % 2)).double().flatten()
    for _ in range(200):
        y = graph(y)
        y = y / y.norm()
    return float(y @ graph(y))
