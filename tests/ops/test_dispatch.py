"""Fused where one fits, plain elsewhere, either one on request."""

import os
import subprocess
import sys

import pytest
import torch

from oracles import random_graph
from tigranet import DynamicPool, GridLaplacian, SparseLaplacian, SpectralConv, Statistics, TIGraNet
from tigranet.ops import dispatch, using


class Spy(torch.utils._python_dispatch.TorchDispatchMode):
    """Which of our operators ran."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "tigranet":
            self.seen.add(function._opname)
        return function(*args, **(kwargs or {}))


def seen(function):
    with Spy() as spy:
        function()
    return spy.seen


GRID = GridLaplacian(4, 5)


def everything(dtype=torch.float32, grid=GRID):
    conv, y = SpectralConv(2, 3, 2).to(dtype), torch.rand(2, 2, grid.num_nodes, dtype=dtype)
    z = conv(y, grid)
    return Statistics(3)(z, grid, DynamicPool(5)(z))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_on_a_grid_all_three_are_fused(dtype):
    assert seen(lambda: everything(dtype)) == {"convolution", "pooling", "statistics"}


def test_on_other_graphs_only_the_pooling_is():
    assert seen(lambda: everything(torch.float32, SparseLaplacian(random_graph()))) == {"pooling"}


def test_plain_on_request(monkeypatch):
    monkeypatch.setenv("TIGRANET_KERNELS", "plain")
    assert not seen(everything)
    with using("fused"):
        assert seen(everything)
    assert not seen(everything)


def test_fused_on_request_says_why_it_cannot(monkeypatch):
    monkeypatch.setenv("TIGRANET_KERNELS", "fused")
    everything()
    with pytest.raises(RuntimeError, match=r"there is none for SparseLaplacian\(.*no grid: unset TIGRANET_KERNELS"):
        everything(torch.float32, SparseLaplacian(random_graph()))
    monkeypatch.setattr(dispatch, "HAS_NUMBA", False)
    with pytest.raises(RuntimeError, match="there is none without numba: pip install numba"):
        everything()


def test_without_numba_it_is_plain(monkeypatch):
    monkeypatch.setattr(dispatch, "HAS_NUMBA", False)
    assert not seen(everything)


def test_a_mode_that_is_none(monkeypatch):
    monkeypatch.setenv("TIGRANET_KERNELS", "fast")
    with pytest.raises(ValueError, match="TIGRANET_KERNELS is plain, fused or auto, got 'fast'"):
        everything()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # PyTorch's own
def test_transforms_of_functions_get_the_plain_version():
    z, layer = torch.rand(3, 1, 2, 20, dtype=torch.float64), Statistics(3)
    mapped = torch.func.vmap(lambda z: layer(z, GRID))(z)
    torch.testing.assert_close(mapped, torch.stack([layer(each, GRID) for each in z]))
    jacobian = torch.func.jacrev(lambda z: layer(z, GRID))(z[0])
    _, forward = torch.func.jvp(lambda z: layer(z, GRID), (z[0],), (torch.ones_like(z[0]),))
    torch.testing.assert_close(jacobian.sum((-1, -2, -3)), forward)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(z[0], torch.ones_like(z[0]))
        tangent = torch.autograd.forward_ad.unpack_dual(layer(dual, GRID)).tangent
    torch.testing.assert_close(tangent, forward)


def test_wrong_shapes_meet_the_layers_own_messages(as_a_user):
    with pytest.raises(ValueError, match="reads maps"):
        Statistics(3)(torch.rand(2, 3, 20), GRID, torch.ones(2, 2, 20, dtype=torch.bool))
    with pytest.raises(ValueError, match="reads 20 values"):
        Statistics(3)(torch.rand(2, 3, 21), GRID)
    with pytest.raises(TypeError, match="float32 or float64"):
        Statistics(3)(torch.rand(2, 3, 20).half(), GRID)


def test_a_network_trains_alike():
    net, images = TIGraNet("SC[3,2]-DP[40]-SC[4,2]-DP[20]-S[4]-FC[5]", num_classes=3).double(), torch.rand(4, 1, 9, 8)
    gradients = []
    for mode in ("plain", "fused"):
        with using(mode):
            loss = net(images.double()).square().mean()
            gradients.append(torch.autograd.grad(loss, list(net.parameters())))
    for mine, other in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-12)


def test_the_import_does_not_load_numba_and_the_first_use_does():
    code = """
import sys, torch, tigranet
assert "numba" not in sys.modules
tigranet.Statistics(2)(torch.rand(1, 1, 20), tigranet.GridLaplacian(4, 5))
assert "numba" in sys.modules
"""
    environment = {**os.environ, "TIGRANET_KERNELS": "fused"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
