"""The CUDA kernels of the oriented network against the plain version: emulated on the CPU, and on a GPU if there is
one."""

import numpy as np
import pytest
import torch

from emulated import emulate, needs_a_compiler
from oracles import random_grid, random_signal
from tigranet import GridLaplacian, TIGraNet
from tigranet.layers.mixed_conv import basis, summed
from tigranet.layers.oriented_product import oriented
from tigranet.ops import using
from tigranet.ops.cuda_oriented import cuda_chebyshev, cuda_chebyshev_sum, cuda_products, cuda_products_backward
from tigranet.ops.grid_spec import describe

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def both(function, *tensors):
    answers = []
    for mode in ("fused", "plain"):
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]
        with using(mode):
            z = function(*leaves)
            g = torch.linspace(-1, 1, z.numel(), dtype=z.dtype, device=z.device).reshape(z.shape)
            answers.append((z.detach(), torch.autograd.grad(z, leaves, g)[0]))
    return answers


@needs_a_compiler
@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_emulated(boundary, tmp_path, monkeypatch):
    emulate(monkeypatch, tmp_path)
    for size in ((11, 7), (2, 3)):  # three strips, of which two lie over each other; less than one
        grid = GridLaplacian(*size, boundary=boundary, diagonal=0.3)
        y, u = torch.randn(2, 3, grid.num_nodes), torch.randn(2, 16, grid.num_nodes)
        with using("plain"):
            torch.testing.assert_close(cuda_chebyshev(y, 3, *describe(grid)), basis(y, grid, 3))
            torch.testing.assert_close(cuda_chebyshev_sum(u, 7, *describe(grid)), summed(u, grid, 7))
            for kinds in (2, 4):
                leaf = u.clone().requires_grad_()
                wanted = oriented(leaf, grid, kinds)
                g = torch.randn_like(wanted)
                torch.testing.assert_close(cuda_products(u, kinds, *describe(grid)), wanted.detach())
                (by_leaf,) = torch.autograd.grad(wanted, leaf, g)
                torch.testing.assert_close(cuda_products_backward(g, u, kinds, *describe(grid)), by_leaf)


@on_gpu
@pytest.mark.parametrize("seed", range(20))
def test_random_cases(seed):
    rng = np.random.default_rng(seed)
    grid, degree, maps = random_grid(rng, 50), int(rng.integers(0, 6)), int(rng.integers(1, 4))
    y = random_signal(rng, 2, maps, grid.num_nodes).cuda()
    u = random_signal(rng, 2, maps * (degree + 1), grid.num_nodes).cuda()
    for function, x in ((basis, y), (summed, u)):
        (came, g_came), (wanted, g_wanted) = both(lambda x, f=function: f(x, grid, degree), x)
        assert (came - wanted).abs().max() <= TOLERANCE[x.dtype] * (degree + 1) * x.abs().max(), grid
        assert (g_came - g_wanted).abs().max() <= TOLERANCE[x.dtype] * (degree + 1), grid
    mixtures = random_signal(rng, 2, 2 * maps, grid.num_nodes).cuda()
    for kinds in (2, 4):
        (came, g_came), (wanted, g_wanted) = both(lambda x, k=kinds: oriented(x, grid, k), mixtures)
        assert (came - wanted).abs().max() <= TOLERANCE[mixtures.dtype] * mixtures.abs().max() ** 2, grid
        assert (g_came - g_wanted).abs().max() <= TOLERANCE[mixtures.dtype] * mixtures.abs().max(), grid


@on_gpu
@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_a_network_gives_the_answer_of_the_cpu(boundary):
    net = TIGraNet("oriented-small", 3, boundary=boundary).double().eval()
    images = torch.rand(3, 1, 28, 28, dtype=torch.float64)
    with torch.no_grad():
        wanted = net(images)
        torch.testing.assert_close(net.cuda()(images.cuda()).cpu(), wanted, rtol=1e-9, atol=1e-9)
