"""The kernels that standardise maps: emulated on the CPU, they agree with PyTorch's batch normalisation."""

import pytest
import torch
import torch.nn.functional as F

from emulated import emulate, needs_a_compiler
from nvcc import compile_to_registers, needs_nvcc
from tigranet.ops.cuda import standardise as kernels

VARIANTS = {"alone": (False, 0, 0), "bias and ReLU": (True, 0, 0), "root": (False, 8, 0), "after maps": (False, 8, 2)}
"""Whether there is a bias, the number of deviations above which values grow as a root, and maps in front."""


def reference(z, bias, large, after, mean=None, variance=None):
    """Batch normalisation by PyTorch and what follows it."""
    training = mean is None
    x = F.batch_norm(z, mean, variance, training=training, eps=1e-5)
    if bias is not None:
        x = torch.relu(x + bias)
    elif large:
        x = x * (1 + x.abs() / large).rsqrt()
    return x if after is None else torch.cat((after, x), dim=1)


def example(shape, variant):
    torch.manual_seed(0)
    has_bias, large, maps_in_front = VARIANTS[variant]
    z = 3 * torch.randn(shape) + 10
    bias = torch.randn(shape[1], 1) if has_bias else None
    after = torch.randn(shape[0], maps_in_front, shape[2]) if maps_in_front else None
    return z, bias, large, after


@needs_nvcc
@pytest.mark.parametrize("pack", [1, 4])
def test_it_compiles_without_spilling_registers(pack):
    flags = {"REAL": "float", "PACK_SIZE": pack, "HAS_BIAS": 1, "ROOT_ABOVE": 0}
    report = compile_to_registers("standardise", flags | dict(kernels.launch_plan(784).macros))
    assert report.count("0 bytes spill stores") == report.count("spill stores") == 6


@needs_a_compiler
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", [(7, 3, 21), (2, 2, 5000)])
def test_forward_and_backward_agree_with_batch_normalisation_emulated(shape, variant, monkeypatch):
    emulate(monkeypatch)
    z, bias, large, after = example(shape, variant)
    leaves = [leaf.requires_grad_() for leaf in (z, bias) if leaf is not None]
    expected = reference(z, bias, large, after)
    g = torch.randn_like(expected)
    g_expected = torch.autograd.grad(expected, leaves, g)
    with torch.no_grad():
        actual, mean, variance = kernels.forward(z, bias, after, 1e-5, large)
        g_z, g_bias = kernels.backward(g[:, -shape[1] :], z, mean, variance, bias, 1e-5, large)
    torch.testing.assert_close(actual, expected.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(mean, z.detach().mean((0, 2)), rtol=1e-5, atol=0)
    torch.testing.assert_close(variance, z.detach().var((0, 2), correction=0), rtol=1e-4, atol=0)
    torch.testing.assert_close(g_z, g_expected[0], rtol=1e-4, atol=1e-5)
    if bias is not None:
        torch.testing.assert_close(g_bias, g_expected[1], rtol=1e-4, atol=1e-4)


@needs_a_compiler
@pytest.mark.parametrize("variant", [*VARIANTS, "bias after maps"])
@pytest.mark.parametrize("shape", [(7, 3, 21), (2, 2, 5000)])
def test_evaluation_agrees_with_batch_normalisation_by_known_moments_emulated(shape, variant, monkeypatch):
    emulate(monkeypatch)
    z, bias, large, after = example(shape, "alone" if variant == "bias after maps" else variant)
    if variant == "bias after maps":
        bias, after = torch.randn(shape[1], 1), torch.randn(shape[0], 3, shape[2])
    mean, variance = 10 + torch.randn(shape[1]), 9 + torch.rand(shape[1])
    expected = reference(z, bias, large, after, mean, variance)
    actual = kernels.evaluate(z, mean, variance, 1e-5, bias, large, after)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


@needs_a_compiler
def test_an_empty_batch_gives_an_empty_result_emulated(monkeypatch):
    emulate(monkeypatch)
    empty = torch.rand(0, 3, 20)
    assert kernels.evaluate(empty, torch.zeros(3), torch.ones(3), 1e-5, None, 0, empty).shape == (0, 6, 20)


def test_packs_of_four_need_aligned_maps():
    assert kernels.pack_size(torch.rand(2, 3, 8)) == 4
    assert kernels.pack_size(torch.rand(2, 3, 8), torch.rand(2, 3, 9)) == 1
    assert kernels.pack_size(torch.rand(100)[1:49].reshape(2, 3, 8)) == 1
