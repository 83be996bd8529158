"""The kernels that halve height and width: emulated on the CPU, they agree with the reference, and turn with images."""

from importlib import import_module

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from emulated import emulate, needs_a_compiler
from nvcc import compile_to_registers, needs_nvcc
from tigranet import GridLaplacian
from tigranet.ops import coarsen, using
from tigranet.ops.cuda import coarsening as kernels
from tigranet.ops.cuda.pixel_packs import real_dtype
from tigranet.ops.grid_spec import GridSpec
from tigranet.testing import SQUARE, equivariance_error, on_nodes

TOLERANCE = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: 2**-8, torch.float16: 2**-11}
SIZES = [(3, 3), (4, 4), (4, 7), (1, 9), (5, 2), (13, 12)]
PACKED, UNPACKED = (3, 16), [(1, 1), (2, 3)]
"""Batch sizes and numbers of maps that are read in packs, or one by one."""


def pixel_by_pixel(y):
    return y.transpose(1, 2).contiguous().transpose(1, 2)


@needs_nvcc
@pytest.mark.parametrize(("dtype", "pack"), [("bfloat16", 8), ("float16", 1), ("double", 2)])
def test_it_compiles_without_spilling_registers(dtype, pack):
    macros = {"STORED": dtype, "REAL": "double" if dtype == "double" else "float", "PACK_SIZE": pack}
    report = compile_to_registers("coarsening", macros)
    assert report.count("0 bytes spill stores") == report.count("spill stores") == 2


@needs_a_compiler
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("size", SIZES)
def test_result_and_gradient_agree_with_the_reference_emulated(size, boundary, dtype, monkeypatch):
    emulate(monkeypatch)
    torch.manual_seed(0)
    laplacian = GridLaplacian(*size, boundary=boundary)
    grid, real, tolerance = GridSpec.of(laplacian), real_dtype(dtype), TOLERANCE[dtype]
    for batch, maps in [PACKED, *(UNPACKED if dtype in (torch.float32, torch.bfloat16) else [])]:
        y = torch.randn(batch, maps, laplacian.num_nodes, dtype=real).to(dtype)
        leaf = y.to(real).requires_grad_()
        expected = coarsen.reference(leaf, laplacian)
        g = torch.randn(expected.shape, dtype=real).to(dtype)
        (g_expected,) = torch.autograd.grad(expected, leaf, g.to(real))
        for signal, upstream in ((y, g), (pixel_by_pixel(y), pixel_by_pixel(g))):
            actual, g_actual = kernels.forward(signal, grid), kernels.backward(upstream, grid)
            assert (actual.dtype, g_actual.dtype) == (dtype, dtype)
            assert maps == 1 or actual.stride(1) == g_actual.stride(1) == 1
            torch.testing.assert_close(actual.to(real), expected.detach(), rtol=tolerance, atol=4 * tolerance)
            torch.testing.assert_close(g_actual.to(real), g_expected, rtol=tolerance, atol=4 * tolerance)


@needs_a_compiler
@pytest.mark.parametrize("size", [8, 9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_coarse_version_of_a_turned_image_is_turned_bit_for_bit_emulated(size, dtype, monkeypatch):
    emulate(monkeypatch)
    grid, coarse = GridSpec(size, size, 8, False, 1.0), -(-size // 2)
    y, g = torch.randn(1, 8, size**2).to(dtype), torch.randn(1, 8, coarse**2).to(dtype)
    for move in SQUARE.values():
        fine_move, coarse_move = on_nodes(move, size, size), on_nodes(move, coarse, coarse)
        assert equivariance_error(lambda y: kernels.forward(y, grid), y, fine_move, coarse_move) == 0
        assert equivariance_error(lambda g: kernels.backward(g, grid), g, coarse_move, fine_move) == 0


@needs_a_compiler
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_nan_or_infinity_reaches_the_same_pixels_as_in_the_reference_emulated(value, monkeypatch):
    emulate(monkeypatch)
    laplacian, y, g = GridLaplacian(7, 6), torch.rand(1, 2, 42), torch.rand(1, 2, 12)
    y[0, 1, 0] = y[0, 0, 20] = g[0, 0, 0] = g[0, 1, 7] = value
    leaf, grid = y.clone().requires_grad_(), GridSpec.of(laplacian)
    expected = coarsen.reference(leaf, laplacian)
    (g_expected,) = torch.autograd.grad(expected, leaf, g)
    assert torch.equal(kernels.forward(y, grid).isfinite(), expected.isfinite())
    assert torch.equal(kernels.backward(g, grid).isfinite(), g_expected.isfinite())


@needs_a_compiler
def test_the_operator_has_gradients_of_both_orders_with_these_kernels_emulated(monkeypatch):
    emulate(monkeypatch)
    module, laplacian = import_module("tigranet.ops.coarsening"), GridLaplacian(3, 4)
    for operator in (module.forward, module.backward):
        monkeypatch.setitem(operator._implementations, "cpu", operator._implementations["cuda"])
    y = pixel_by_pixel(torch.randn(1, 2, 12, dtype=torch.float64)).requires_grad_()
    with using("fused"):
        assert gradcheck(lambda y: coarsen(y, laplacian) ** 2, y)
        assert gradgradcheck(lambda y: coarsen(y, laplacian) ** 2, y)
