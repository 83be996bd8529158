"""The CUDA kernels of the oriented network against the plain version on the same device: run on one with a GPU."""

import numpy as np
import pytest
import torch

from oracles import random_grid, random_signal
from tigranet import TIGraNet
from tigranet.kernels import using
from tigranet.layers.mixed_conv import basis, summed
from tigranet.layers.oriented_product import oriented

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
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


@pytest.mark.parametrize("seed", range(20))
def test_random_cases(seed):
    rng = np.random.default_rng(seed)
    grid, degree, maps = random_grid(rng, 70), int(rng.integers(0, 6)), int(rng.integers(1, 4))
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


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_a_network_gives_the_answer_of_the_cpu(boundary):
    net = TIGraNet("oriented-small", 3, boundary=boundary).double().eval()
    images = torch.rand(3, 1, 28, 28, dtype=torch.float64)
    with torch.no_grad():
        wanted = net(images)
        torch.testing.assert_close(net.cuda()(images.cuda()).cpu(), wanted, rtol=1e-9, atol=1e-9)
