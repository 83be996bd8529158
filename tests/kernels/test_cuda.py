"""The CUDA kernels against the plain version on the same device: run on a machine with a GPU."""

import numpy as np
import pytest
import torch

from oracles import random_grid, random_signal
from tigranet import DynamicPool, GridLaplacian, SpectralConv, Statistics
from tigranet.kernels import using
from tigranet.kernels.cuda import _store, cache_folder
from tigranet.testing import SQUARE, equivariance_error, on_nodes

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-11}


def both(function):
    answers = []
    for mode in ("fused", "plain"):
        with using(mode):
            answers.append(function())
    return answers


@on_gpu
@pytest.mark.parametrize("seed", range(10))
def test_random_cases(seed):
    """A gradient may differ at a node whose t is zero but for rounding in one version and not in the other."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    grid, order = random_grid(rng, 60), int(rng.integers(0, 14))
    y = random_signal(rng, 3, 2, grid.num_nodes).cuda()
    conv = SpectralConv(2, 5, int(rng.integers(0, 5))).to(y)
    omega = torch.from_numpy(rng.random((3, 1, grid.num_nodes)) < 0.6).cuda() if seed % 2 else None
    came, wanted = both(lambda: conv(y, grid, omega))
    assert torch.equal(came, wanted)
    z = wanted.detach()
    pool = DynamicPool(int(rng.integers(1, grid.num_nodes + 3)))
    active, other = both(lambda: pool(z, omega))
    assert torch.equal(active, other)
    strict, other = both(lambda: DynamicPool(pool.num_active, "strict")(z, omega).sum(-1))
    assert torch.equal(strict, other)
    came, wanted = both(lambda: Statistics(order)(z, grid, active if seed % 3 else None))
    mean, variance = wanted.reshape(3, 5, -1, 2).unbind(-1)
    scale = torch.stack((mean, variance + mean**2), dim=-1).reshape(wanted.shape)
    assert ((came - wanted).abs() <= TOLERANCE[y.dtype] * scale).all(), grid

    def gradients():
        leaf = z.clone().requires_grad_()
        phi = Statistics(order)(leaf, grid, active)
        input = y.detach().clone().requires_grad_()
        g = torch.ones_like(phi) + torch.arange(phi.shape[1], device="cuda", dtype=phi.dtype)
        by_conv = torch.autograd.grad(conv(input, grid, omega), (input, conv.alpha, conv.beta), torch.ones_like(z))
        return (*torch.autograd.grad(phi, leaf, g), *by_conv)

    for index, (mine, other) in enumerate(zip(*both(gradients), strict=True)):
        scale = other.abs().amax() if index else other.abs().amax(-1, keepdim=True)
        wrong = (mine - other).abs() > 100 * TOLERANCE[y.dtype] * scale
        assert wrong.float().mean() < 0.01, (index, grid)


@on_gpu
@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_the_maps_of_a_turned_image_are_the_turned_maps_bit_for_bit(boundary):
    grid, conv = GridLaplacian(26, 26, boundary=boundary), SpectralConv(3, 10, 4).cuda()
    y = torch.rand(2, 3, 26 * 26, device="cuda")
    with using("fused"):
        for transform in SQUARE.values():
            assert equivariance_error(lambda y: conv(y, grid), y, on_nodes(transform, 26, 26)) == 0


@on_gpu
def test_what_is_too_large_is_plain_and_right():
    z, grid = torch.rand(1, 2, 300 * 200), GridLaplacian(300, 200)
    torch.testing.assert_close(Statistics(3)(z.cuda(), grid).cpu(), Statistics(3)(z, grid), rtol=1e-4, atol=1e-6)
    with using("fused"), pytest.raises(RuntimeError, match="there is none that holds a map of GridLaplacian"):
        Statistics(3)(z.cuda(), grid)


def test_compiled_kernels_are_stored_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "new"))
    _store(cache_folder() / "kernel.cubin", b"binary")
    assert [path.name for path in cache_folder().iterdir()] == ["kernel.cubin"]
    assert (cache_folder() / "kernel.cubin").read_bytes() == b"binary"


def test_without_a_place_to_store_nothing_is_stored(tmp_path):
    (tmp_path / "file").write_text("")
    _store(tmp_path / "file" / "kernel.cubin", b"binary")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
