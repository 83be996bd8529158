"""The kernels that normalise features with orientations: emulated on the CPU, they agree with the reference."""

import pytest
import torch

from emulated import emulate, needs_a_compiler
from nvcc import compile_to_registers, needs_nvcc
from tigranet.ops import orientation_norm, orientation_norm_eval
from tigranet.ops.cuda import orientation_norm as kernels
from tigranet.ops.cuda import pixel_packs
from tigranet.ops.grid_spec import GridSpec

EPS = 1e-5
TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5, torch.bfloat16: 2**-7, torch.float16: 2**-10}
"""Relative to the size of the result. Half precision is rounded once; the reference is computed in float32."""
DTYPES = list(TOLERANCE)
SHAPES = [
    (1, 4, 1, 1, 3, 0),
    (2, 4, 3, 5, 7, 1),
    (3, 8, 3, 6, 4, 2),
    (1, 1, 2, 3, 2, 3),
    (1, 8, 12, 4, 5, 2),
    (5, 8, 2, 9, 8, 1),
]
"""Batch, orientations, features, height, width and border."""


def make_inputs(batch, orientations, features, height, width, dtype, mean=10.0):
    torch.manual_seed(0)
    real = pixel_packs.real_dtype(dtype)
    y = torch.randn(batch, height * width, orientations, features, dtype=real)
    y = y * (0.1 + 5 * torch.rand(features, dtype=real)) + mean * torch.randn(features, dtype=real)
    scale = torch.rand(features, dtype=real) + 0.5
    scale[-1] *= -1
    return y.flatten(2).transpose(1, 2).to(dtype), scale, torch.randn(features, dtype=real)


def assert_close(actual, expected, dtype, size=None, share_of_errors=0.0):
    """Compare with a reference in the type of the arithmetic."""
    assert actual.shape == expected.shape
    size = expected.abs().amax() if size is None else size
    error = (actual.to(expected.dtype) - expected).abs() > TOLERANCE[dtype] * (expected.abs() + size)
    assert error.double().mean() <= share_of_errors


def assert_gradients_agree(actual, expected, g, inputs, deviation, border):
    """Compare gradients by y, scale and bias. Rounding decides at the kink of ReLU."""
    y, scale, _ = inputs
    size = float(g.abs().max()) * (1 + 2 * border) ** 2
    by_map = (deviation / scale.abs()).repeat(y.shape[1] // len(scale))[:, None]
    assert actual[0].dtype == y.dtype
    assert_close(actual[0] * by_map, expected[0] * by_map, y.dtype, size, share_of_errors=2e-3)
    terms = size * (y.numel() / len(scale)) ** 0.5
    for mine, other in zip(actual[1:], expected[1:], strict=True):
        assert mine.dtype == scale.dtype
        assert_close(mine, other, y.dtype, terms)


@needs_nvcc
@pytest.mark.parametrize(("dtype", "pack"), [("bfloat16", 8), ("bfloat16", 1), ("float", 4), ("double", 2)])
def test_it_compiles_and_reads_sixteen_bytes_at_once(tmp_path, dtype, pack):
    macros = {"STORED": dtype, "REAL": "double" if dtype == "double" else "float", "PACK_SIZE": pack}
    report = compile_to_registers(tmp_path, "orientation_norm", macros)
    assert report.count("spill stores") == 6


@needs_a_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_images_moments_and_gradients_agree_with_the_reference_emulated(shape, torus, dtype, monkeypatch):
    emulate(monkeypatch)
    *sizes, border = shape
    height, width = sizes[3:]
    grid, inputs = GridSpec(height, width, 8, torus, 1.0), make_inputs(*sizes, dtype)
    y, scale, bias = inputs
    leaves = [x.to(scale.dtype).requires_grad_() for x in inputs]
    expected, mean, variance = orientation_norm.reference(*leaves, EPS, border, grid)
    actual, *moments = kernels.forward(*inputs, EPS, border, grid)
    assert actual.dtype == dtype
    assert actual.is_contiguous(memory_format=torch.channels_last)
    assert_close(actual, expected.detach(), dtype)
    real = scale.dtype
    assert_close(moments[0], mean, real)
    assert_close(moments[1], variance, real)
    g = torch.randn(expected.shape, dtype=real).to(dtype)
    g_expected = torch.autograd.grad(expected, leaves, g.to(real))
    gradients = kernels.backward(g, y, *moments, scale, bias, EPS, border, grid, known_moments=False)
    assert_gradients_agree(gradients, g_expected, g, inputs, (variance + EPS).sqrt(), border)


@needs_a_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_known_moments_agree_with_the_reference_emulated(shape, torus, dtype, monkeypatch):
    emulate(monkeypatch)
    *sizes, border = shape
    height, width = sizes[3:]
    grid, inputs = GridSpec(height, width, 8, torus, 1.0), make_inputs(*sizes, dtype, mean=1)
    y, scale, bias = inputs
    mean, variance = torch.randn_like(scale), 10 * torch.rand_like(scale)
    leaves = [x.to(scale.dtype).requires_grad_() for x in inputs]
    expected = orientation_norm_eval.reference(leaves[0], mean, variance, *leaves[1:], EPS, border, grid)
    actual = kernels.evaluate(y, mean, variance, scale, bias, EPS, border, grid)
    assert_close(actual, expected.detach(), dtype)
    g = torch.randn(expected.shape, dtype=scale.dtype).to(dtype)
    g_expected = torch.autograd.grad(expected, leaves, g.to(scale.dtype))
    gradients = kernels.backward(g, y, mean, variance, scale, bias, EPS, border, grid, known_moments=True)
    assert_gradients_agree(gradients, g_expected, g, inputs, (variance + EPS).sqrt(), border)
