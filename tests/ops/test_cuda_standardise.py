"""Standardising on a GPU against PyTorch's batch normalisation: emulated on the CPU, and on a GPU if there is one."""

import pytest
import torch

from emulated import emulate, needs_a_compiler
from tigranet.ops import standardised
from tigranet.ops.cuda_standardise import backward, forward
from tigranet.ops.standardise import plainly

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")


WAYS = {"alone": (False, 0, 0), "rectified": (True, 0, 0), "rooted": (False, 8, 0), "joined": (False, 8, 2)}


def case(shape, way, dtype=torch.float32, device="cpu"):
    torch.manual_seed(0)
    biased, large, before = WAYS[way]
    z = (3 * torch.randn(shape, dtype=dtype, device=device) + 10).requires_grad_()
    bias = torch.randn(shape[1], 1, dtype=dtype, device=device).requires_grad_() if biased else None
    y = torch.randn(shape[0], before, shape[2], dtype=dtype, device=device).requires_grad_() if before else None
    leaves = [leaf for leaf in (z, bias, y) if leaf is not None]
    wanted = plainly(z, bias, 1e-5, large)
    wanted = wanted if y is None else torch.cat((y, wanted), dim=1)
    g = torch.randn_like(wanted)
    return z, bias, y, large, wanted.detach(), g, leaves, torch.autograd.grad(wanted, leaves, g)


@needs_a_compiler
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(7, 3, 21), (2, 2, 5000)])
def test_emulated(shape, way, tmp_path, monkeypatch):
    emulate(monkeypatch, tmp_path)
    z, bias, y, large, wanted, g, _, g_wanted = case(shape, way)
    came, mean, variance = forward(z.detach(), bias, y, 1e-5, large)
    torch.testing.assert_close(came, wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(variance, z.detach().var((0, 2), correction=0), rtol=1e-4, atol=0)
    g_z, g_bias = backward(g[:, -shape[1] :], z.detach(), mean, variance, bias, 1e-5, large)
    torch.testing.assert_close(g_z, g_wanted[0], rtol=1e-4, atol=1e-5)
    if bias is not None:
        torch.testing.assert_close(g_bias, g_wanted[1], rtol=1e-4, atol=1e-4)


@on_gpu
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(250, 64, 676), (1, 1, 2), (3, 5, 9000), (37, 2, 100)])
def test_on_a_gpu(shape, dtype, way):
    z, bias, y, large, wanted, g, leaves, g_wanted = case(shape, way, dtype, "cuda")
    came, mean, variance = standardised(z, 1e-5, bias, large, y)
    rtol = 1e-3 if dtype == torch.float32 else 1e-10
    near = torch.isclose(came, wanted, rtol=rtol, atol=rtol / 10)
    assert near.all()
    torch.testing.assert_close(variance, z.detach().var((0, 2), correction=0), rtol=rtol, atol=0)
    torch.testing.assert_close(mean, z.detach().mean((0, 2)), rtol=rtol, atol=0)
    found = torch.autograd.grad(came, leaves, g)
    for mine, other in zip(found, g_wanted, strict=True):
        scale = float(other.abs().max()) + 1e-6
        apart = ((mine - other).abs() > 10 * rtol * scale).float().mean()
        assert apart <= (1e-4 if way == "rectified" else 0)  # where ReLU bends, rounding decides


@on_gpu
@pytest.mark.parametrize("way", WAYS)
def test_it_has_a_second_derivative_and_is_a_well_made_operator(way):
    biased, large, before = WAYS[way]
    z = torch.randn(4, 2, 6, dtype=torch.float64, device="cuda", requires_grad=True)
    bias = torch.rand(2, 1, dtype=torch.float64, device="cuda", requires_grad=True) if biased else None
    y = torch.rand(4, before, 6, dtype=torch.float64, device="cuda", requires_grad=True) if before else None
    assert torch.autograd.gradgradcheck(lambda z: standardised(z, 1e-3, bias, large, y)[0], z)
    torch.library.opcheck(torch.ops.tigranet.standardise.default, (z, bias, y, 1e-3, large), test_utils="test_schema")
