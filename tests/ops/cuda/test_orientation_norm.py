"""The kernels that normalise features with orientations: emulated on the CPU, they agree with the reference."""

import re
from importlib import import_module

import pytest
import torch

from emulated import emulate, needs_a_compiler
from nvcc import compile_to_registers, needs_nvcc
from tigranet.ops import orientation_norm, orientation_norm_eval, using
from tigranet.ops.cuda import orientation_norm as kernels
from tigranet.ops.cuda import pixel_packs
from tigranet.ops.grid_spec import GridSpec

EPS = 1e-5
TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5, torch.bfloat16: 2**-7, torch.float16: 2**-10}
"""Relative to the size of the result. Half precision is rounded once; the reference is computed in float32."""
SHAPES = [
    (1, 4, 1, 1, 3, 0),
    (2, 4, 3, 5, 7, 1),
    (3, 8, 3, 6, 4, 2),
    (1, 1, 2, 3, 2, 3),
    (1, 8, 12, 4, 5, 2),
    (5, 8, 2, 9, 8, 1),
    (1, 7, 43, 2, 3, 1),
]
"""Batch, orientations, features, height, width and border. The last has more maps than a block has threads."""

CASES = [(shape, dtype) for shape in SHAPES for dtype in (torch.float32, torch.bfloat16)]
CASES += [(SHAPES[2], dtype) for dtype in (torch.float64, torch.float16)]


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
@pytest.mark.parametrize(("dtype", "pack"), [("bfloat16", 8), ("double", 1)])
def test_it_compiles_and_hardly_spills_registers(dtype, pack):
    macros = {"STORED": dtype, "REAL": "double" if dtype == "double" else "float", "PACK_SIZE": pack}
    report = compile_to_registers("orientation_norm", macros)
    spilled = [int(size) for size in re.findall(r"(\d+) bytes spill stores", report)]
    assert len(spilled) == 6
    assert max(spilled) <= 16  # around a division in double precision


@needs_a_compiler
@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize(("shape", "dtype"), CASES)
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
@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize(("shape", "dtype"), CASES)
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


@needs_a_compiler
@pytest.mark.parametrize("far", [1e4, -3e5])
def test_features_far_from_zero_keep_their_variance_emulated(far, monkeypatch):
    emulate(monkeypatch)
    torch.manual_seed(0)
    y = far + torch.randn(2, 8, 900)
    _, mean, variance = kernels.forward(y, torch.ones(2), torch.zeros(2), EPS, 0, GridSpec(30, 30, 8, False, 1.0))
    columns = y.double().unflatten(1, (4, 2))
    torch.testing.assert_close(mean, columns.mean((0, 1, 3)).float())
    torch.testing.assert_close(variance, columns.var((0, 1, 3), correction=0).float())


@needs_a_compiler
def test_the_variance_is_right_if_the_first_pixel_is_far_from_the_others_emulated(monkeypatch):
    emulate(monkeypatch)
    torch.manual_seed(0)
    y = torch.randn(2, 8, 900)
    y[0, :, 0] += 1e3
    _, _, variance = kernels.forward(y, torch.ones(2), torch.zeros(2), EPS, 0, GridSpec(30, 30, 8, False, 1.0))
    expected = y.double().unflatten(1, (4, 2)).var((0, 1, 3), correction=0)
    torch.testing.assert_close(variance, expected.float(), rtol=1e-5, atol=0)


@needs_a_compiler
def test_a_constant_feature_has_variance_zero_emulated(monkeypatch):
    emulate(monkeypatch)
    y, grid = torch.full((2, 8, 48), 0.1), GridSpec(6, 8, 8, False, 1.0)
    z, mean, variance = kernels.forward(y, torch.ones(2), torch.ones(2), EPS, 1, grid)
    torch.testing.assert_close(mean, torch.full((2,), 0.1))
    assert (variance < 1e-14).all()
    torch.testing.assert_close(z, torch.ones_like(z), rtol=0, atol=1e-4)


@needs_a_compiler
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_nan_or_infinity_affects_only_its_feature_emulated(value, dtype, monkeypatch):
    emulate(monkeypatch)
    (y, scale, bias), grid = make_inputs(2, 4, 3, 4, 5, dtype), GridSpec(4, 5, 8, False, 1.0)
    y[1, 2, 7] = value  # feature 2 of orientation 0
    z, mean, variance = kernels.forward(y, scale, bias, EPS, 1, grid)
    assert z.isnan()[:, 2::3].all()
    assert not z.isnan()[:, ::3].any()
    assert not z.isnan()[:, 1::3].any()
    assert torch.equal(mean.isfinite() & variance.isfinite(), torch.tensor([True, True, False]))


@needs_a_compiler
def test_other_memory_layouts_and_addresses_that_are_not_aligned_emulated(monkeypatch):
    emulate(monkeypatch)
    (y, scale, bias), grid = make_inputs(2, 4, 2, 4, 5, torch.float32), GridSpec(4, 5, 8, False, 1.0)
    expected = kernels.forward(y, scale, bias, EPS, 1, grid)
    g = torch.randn_like(expected[0])
    g_expected = kernels.backward(g, y, *expected[1:], scale, bias, EPS, 1, grid, known_moments=False)
    shifted = torch.empty(y.numel() + 1)[1:].view(2, 20, 8).transpose(1, 2).copy_(y)
    assert pixel_packs.pack_size(8, pixel_packs.as_pixels(shifted)) == 1
    for maps in (y.contiguous(), torch.cat((y, y), dim=1)[:, 8:], shifted):
        actual = kernels.forward(maps, scale, bias, EPS, 1, grid)
        for mine, other in zip(actual, expected, strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)
        for upstream in (g, g.contiguous()):
            gradients = kernels.backward(
                upstream, maps, *actual[1:], scale, bias, EPS, 1, grid, known_moments=False
            )  # fmt: skip
            for mine, other in zip(gradients, g_expected, strict=True):
                torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


@needs_a_compiler
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_operators_have_the_gradients_of_the_reference_with_these_kernels_emulated(mode, monkeypatch):
    emulate(monkeypatch)
    module = import_module("tigranet.ops.orientation_norm" + ("_eval" if mode == "eval" else ""))
    for operator in (module.forward, module.backward):
        monkeypatch.setitem(operator._implementations, "cpu", operator._implementations["cuda"])
    (y, scale, bias), grid = make_inputs(2, 4, 3, 4, 5, torch.float64), GridSpec(4, 5, 8, True, 1.0)
    leaves, moments = [x.requires_grad_() for x in (y, scale, bias)], [torch.rand(3, dtype=torch.float64) for _ in "mv"]
    results = []
    for kernel_mode in ("fused", "plain"):
        with using(kernel_mode):
            if mode == "eval":
                z = orientation_norm_eval(y, *moments, scale, bias, EPS, 2, grid)
            else:
                z, _, _ = orientation_norm(y, scale, bias, EPS, 2, grid)
            first = torch.autograd.grad(z.square().sum(), leaves, retain_graph=True)
            second = torch.autograd.grad(z.square().sum(), leaves, create_graph=True)[1]
            results.append((z, *first, *torch.autograd.grad(second.square().sum(), leaves)))
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-9 * float(other.detach().abs().max()))
