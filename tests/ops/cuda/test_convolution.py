"""The kernels of the convolution: emulated on the CPU, they agree with the reference."""

import numpy as np
import pytest
import torch

from agreement import assert_convolutions_agree
from emulated import H200, emulate, needs_a_compiler
from nvcc import GRID, compile_to_registers, needs_nvcc
from tigranet import GridLaplacian, SpectralConv
from tigranet.ops.cuda import convolution as kernels
from tigranet.ops.grid_spec import GridSpec

SMALL = GridSpec(28, 28, 8, False, 1.0)


@needs_nvcc
@pytest.mark.parametrize("backward", [False, True])
def test_the_source_compiles(backward):
    plan = kernels.launch_plan(GridSpec(9, 8, 8, True, 1.0), 8, H200, backward, 2, 3, 3)
    flags = {"WRAP_ROWS": 1, "WRAP_COLUMNS": 1, "REAL": "double", "NEEDS_INPUT_GRADIENT": 1}
    compile_to_registers("convolution", GRID | flags | dict(plan.macros))


@needs_a_compiler
def test_it_agrees_with_the_reference_emulated(monkeypatch):
    emulate(monkeypatch)
    rng = np.random.default_rng(0)
    grid, conv = GridLaplacian(9, 8, boundary="torus"), SpectralConv(3, 4, 2)
    omega = torch.from_numpy(rng.random((2, 1, 72)) < 0.6)
    y = torch.from_numpy(rng.standard_normal((2, 3, 72))).float()
    assert_convolutions_agree("emulated", conv, y, grid, omega, rng)


@needs_a_compiler
def test_the_gradient_by_the_maps_is_left_out_where_it_is_not_needed_emulated(monkeypatch):
    emulate(monkeypatch)
    y, alpha, beta, g = torch.rand(2, 3, 20), torch.rand(4, 3), torch.rand(3), torch.rand(2, 4, 20)
    grid = GridSpec(4, 5, 8, False, 1.0)
    g_y, *parameters = kernels.backward(g, y, alpha, beta, None, False, grid)
    assert g_y.shape == (0, 3, 20)
    for actual, expected in zip(parameters, kernels.backward(g, y, alpha, beta, None, True, grid)[1:], strict=True):
        assert torch.equal(actual, expected)


def test_many_filters_are_streamed_because_their_sums_exceed_even_an_h200():
    assert not isinstance(kernels.launch_plan(SMALL, 4, H200, True, 64, 64, 5), str)
    reason = kernels.launch_plan(SMALL, 4, H200, True, 512, 512, 17)
    assert "KiB of shared memory, this device has 227 KiB" in reason
    assert not isinstance(kernels.launch_plan(SMALL, 4, H200, False, 512, 512, 17), str)


def test_large_images_are_streamed():
    assert "100x100" in kernels.launch_plan(GridSpec(100, 100, 8, False, 1.0), 4, H200, False, 1, 1, 1)
