import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from tigranet import GridLaplacian, SpectralConv
from tigranet.figures.filters import draw_filters, end_of_spectrum
from tigranet.graphs import Eigenbasis


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("shape", [(9, 9), (8, 13)])
def test_the_end_of_the_spectrum_is_the_largest_eigenvalue(shape, neighbours, boundary):
    graph = GridLaplacian(*shape, neighbours, boundary)
    assert end_of_spectrum(graph) == pytest.approx(float(Eigenbasis.of(graph).lam[-1]), abs=0.02)


def test_a_curve_is_its_polynomial():
    conv = SpectralConv(1, 3, degree=2)
    axes = Figure().add_subplot()
    draw_filters(axes, conv, 1.5)
    for line, alpha in zip(axes.lines, conv.alpha.detach(), strict=False):
        lam = torch.from_numpy(np.asarray(line.get_xdata()))
        wanted = sum(a.double() * lam**m for m, a in enumerate(alpha))
        np.testing.assert_allclose(line.get_ydata(), wanted, atol=1e-6)
