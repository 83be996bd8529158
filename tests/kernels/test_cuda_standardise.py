"""Standardising on a GPU against PyTorch's batch normalisation: emulated on the CPU, and on a GPU if there is one."""

import pytest
import torch

from emulated import emulate, needs_a_compiler
from tigranet.kernels import standardised
from tigranet.kernels.cuda_standardise import backward, forward

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")


@needs_a_compiler
@pytest.mark.parametrize("shape", [(7, 3, 20), (1, 2, 9000), (1000, 1, 30)])
def test_emulated(shape, tmp_path, monkeypatch):
    emulate(monkeypatch, tmp_path)
    torch.manual_seed(0)
    z = (torch.randn(shape) + 3).requires_grad_()
    wanted = torch.nn.functional.batch_norm(z, None, None, training=True, eps=1e-5)
    g = torch.randn_like(z)
    came, mean, variance = forward(z.detach(), 1e-5)
    torch.testing.assert_close(came, wanted.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(variance, z.detach().var((0, 2), correction=0), rtol=1e-4, atol=0)
    (g_wanted,) = torch.autograd.grad(wanted, z, g)
    torch.testing.assert_close(backward(g, z.detach(), mean, variance, 1e-5), g_wanted, rtol=1e-4, atol=1e-5)


@on_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(250, 64, 676), (1, 1, 2), (3, 5, 9000), (37, 2, 100)])
def test_maps_are_standardised_as_pytorch_does(shape, dtype):
    torch.manual_seed(0)
    z = (torch.randn(shape, dtype=dtype, device="cuda") * 3 + 100).requires_grad_()
    g = torch.randn_like(z)
    came, mean, variance = standardised(z, 1e-5)
    wanted = torch.nn.functional.batch_norm(z, None, None, training=True, eps=1e-5)
    rtol = 1e-3 if dtype == torch.float32 else 1e-10  # the mean is 30 deviations from zero
    torch.testing.assert_close(came, wanted, rtol=rtol, atol=rtol)
    torch.testing.assert_close(variance, z.var((0, 2), correction=0), rtol=rtol, atol=0)
    torch.testing.assert_close(mean, z.mean((0, 2)), rtol=rtol / 10, atol=0)
    mine, other = (torch.autograd.grad(out, z, g)[0] for out in (came, wanted))
    torch.testing.assert_close(mine, other, rtol=10 * rtol, atol=rtol)


@on_gpu
def test_it_has_a_second_derivative_and_is_a_well_made_operator():
    z = torch.randn(4, 2, 6, dtype=torch.float64, device="cuda", requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda z: standardised(z, 1e-3)[0], z)
    torch.library.opcheck(torch.ops.tigranet.standardise.default, (z, 1e-3), test_utils="test_schema")
