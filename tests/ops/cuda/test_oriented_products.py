"""The kernels of products of image gradients: emulated on the CPU, they agree with the reference."""

import pytest
import torch

from emulated import H200, emulate, needs_a_compiler
from nvcc import GRID, compile_to_registers, needs_nvcc
from tigranet import GridLaplacian
from tigranet.ops import oriented_products
from tigranet.ops.cuda import oriented_products as kernels
from tigranet.ops.cuda.limits import DeviceLimits
from tigranet.ops.fallback import KernelUnavailableError
from tigranet.ops.grid_spec import GridSpec


@needs_nvcc
@pytest.mark.parametrize("backward", [False, True])
def test_it_compiles_without_spilling_registers(backward):
    plan = kernels.launch_plan(GridSpec(28, 28, 8, False, 1.0), 4, H200, backward)
    report = compile_to_registers("oriented_products", GRID | dict(plan.macros) | {"KINDS": 4})
    assert "0 bytes spill stores" in report


@needs_a_compiler
@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("size", [(11, 7), (2, 3)])  # three strips of which two overlap; less than one strip
@pytest.mark.parametrize("kinds", [2, 4])
@pytest.mark.parametrize("compact", [0, 1])
def test_they_agree_with_the_reference_emulated(boundary, size, kinds, compact, monkeypatch):
    grid = GridLaplacian(*size, boundary=boundary, diagonal=0.3)
    limits = DeviceLimits(4 * 4 * grid.num_nodes, 1024, 64 * 1024) if compact else H200  # room for four maps
    emulate(monkeypatch, limits)
    for backward in (False, True):
        assert dict(kernels.launch_plan(GridSpec.of(grid), 4, limits, backward).macros)["COMPACT"] == compact
    mixtures = torch.randn(2, 16, grid.num_nodes, requires_grad=True)
    expected = oriented_products.reference(mixtures, grid, kinds)
    g = torch.randn_like(expected)
    (g_expected,) = torch.autograd.grad(expected, mixtures, g)
    spec = GridSpec.of(grid)
    torch.testing.assert_close(kernels.forward(mixtures.detach(), kinds, spec), expected.detach())
    torch.testing.assert_close(kernels.backward(g, mixtures.detach(), kinds, spec), g_expected)


@pytest.mark.parametrize("backward", [False, True])
def test_sixty_four_pixels_fit_on_a_consumer_gpu_and_on_a_t4(backward):
    for shared_memory in (64, 99, 163, 227):
        limits = DeviceLimits(shared_memory * 1024, 1024, 64 * 1024)
        assert kernels.why_unsupported(GridSpec(64, 64, 8, False, 1.0), 4, limits, backward) is None


@pytest.mark.parametrize("backward", [False, True])
def test_the_reason_names_the_shared_memory_that_is_needed_and_available(backward):
    limits, grid = DeviceLimits(99 * 1024, 1024, 64 * 1024), GridSpec(96, 96, 8, False, 1.0)
    reason = kernels.why_unsupported(grid, 4, limits, backward)
    assert reason == "a pair of 96x96 maps needs 144 KiB of shared memory, this device has 99 KiB per block"


@needs_a_compiler
def test_a_call_that_does_not_fit_is_unavailable_emulated(monkeypatch):
    emulate(monkeypatch)
    with pytest.raises(KernelUnavailableError, match="224x224"):
        kernels.forward(torch.rand(1, 2, 224 * 224), 2, GridSpec(224, 224, 8, False, 1.0))
