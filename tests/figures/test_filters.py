import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from tigranet import GridLaplacian, SpectralConv
from tigranet.figures.filters import draw_filters, largest_eigenvalue
from tigranet.graphs import Eigenbasis


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize(("neighbours", "diagonal"), [(4, 1.0), (8, 1.0), (8, 0.3)])
@pytest.mark.parametrize("shape", [(9, 9), (8, 13)])
def test_power_iteration_gives_the_largest_eigenvalue(shape, neighbours, diagonal, boundary):
    graph = GridLaplacian(*shape, neighbours, boundary, diagonal)
    assert largest_eigenvalue(graph) == pytest.approx(float(Eigenbasis.of(graph).lam[-1]), abs=0.02)


def test_each_curve_is_the_polynomial_of_its_filter():
    conv = SpectralConv(1, 3, degree=2)
    axes = Figure().add_subplot()
    draw_filters(axes, conv, 1.5)
    curves = [line for line in axes.lines if len(line.get_xdata()) > 2]  # the line at 0 has two points
    assert axes.get_xlim() == (0, 1.5)
    for line, alpha in zip(curves, conv.alpha.detach(), strict=True):
        lam = torch.from_numpy(np.asarray(line.get_xdata()))
        assert (lam[0], lam[-1]) == (0, 1.5)
        expected = sum(a.double() * lam**m for m, a in enumerate(alpha))
        np.testing.assert_allclose(line.get_ydata(), expected, atol=1e-6)
