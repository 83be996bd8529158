"""Pieces of the compiled CPU code that no operator shows by itself."""

import numpy as np
import pytest
import torch

from tigranet import GridLaplacian
from tigranet.kernels import cpu_oriented


@pytest.mark.parametrize("wraps", [(False, False), (True, True), (True, False)])
def test_the_adjoint_is_the_adjoint(wraps):
    """The inner product of the gradient of f with (a, b) is that of f with the adjoint of (a, b)."""
    rng, height, width = np.random.default_rng(0), 5, 7
    f, a, b = (rng.standard_normal(shape) for shape in ((height, width),) * 3)
    p, f_x, f_y, q = np.zeros((4, height + 2, width + 2))
    cpu_oriented._frame(f.reshape(-1), p, height, width)
    cpu_oriented._surround(p, height, width, *wraps)
    cpu_oriented._gradient(p, height, width, f_x, f_y)
    inner = (f_x[1:-1, 1:-1] * a + f_y[1:-1, 1:-1] * b).sum()
    cpu_oriented._adjoint(np.pad(a, 2), np.pad(b, 2), height, width, *wraps, q)
    assert (q[1:-1, 1:-1] * f).sum() == pytest.approx(inner, abs=1e-12)


def test_the_gradient_is_the_grids_to_the_bit():
    f = torch.randn(35)
    p, f_x, f_y = np.zeros((3, 7, 9), np.float32)
    cpu_oriented._frame(f.numpy(), p, 5, 7)
    cpu_oriented._surround(p, 5, 7, True, True)
    cpu_oriented._gradient(p, 5, 7, f_x, f_y)
    for came, wanted in zip((f_x, f_y), GridLaplacian(5, 7, boundary="torus").gradient(f), strict=True):
        assert torch.equal(torch.from_numpy(came[1:-1, 1:-1].flatten()), wanted)
