"""Strips of lines and blocks of images are computed by themselves, on processors with long and with short registers."""

from itertools import product

import numpy as np
import pytest
import torch
from llvmlite import binding

from tigranet.circular_harmonics import basis_size, circular_harmonics
from tigranet.ops import group_convolution
from tigranet.ops.cpu import group_convolution as kernels
from tigranet.ops.orientation_frequencies import matrix_shapes

BATCH, IN_FEATURES, OUT_FEATURES, HEIGHT, WIDTH = 3, 2, 4, 11, 9


def random_input(size, batch=BATCH, dtype=torch.float32):
    x = torch.randn(batch, 8 * IN_FEATURES, HEIGHT + size - 1, WIDTH + size - 1, dtype=dtype)
    weight = torch.randn(OUT_FEATURES, IN_FEATURES, 8, basis_size(size), dtype=dtype)
    basis = torch.from_numpy(circular_harmonics(size, 8)).flatten(2).to(dtype)
    return x, weight, basis, torch.randn(batch, 8 * OUT_FEATURES, HEIGHT, WIDTH, dtype=dtype)


def run(x, weight, basis, g):
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    z = group_convolution(x, weight, basis)
    return z.detach(), *torch.autograd.grad(z, (x, weight), g)


def arguments_of(name, monkeypatch, inputs):
    """Return the arguments with which a kernel is called first."""
    calls, function = [], getattr(kernels, name)
    with monkeypatch.context() as patch:
        patch.setattr(kernels, name, lambda *args: (calls.append(args), function(*args)))
        run(*inputs)
    return calls[0]


# strips


@pytest.mark.parametrize("width", [1, 28, 224, 4096])
@pytest.mark.parametrize("height", [1, 7, 8, 28, 224, 4096])
def test_the_planes_of_a_strip_fit_in_the_cache_unless_it_has_the_least_number_of_lines(height, width):
    for border, features, itemsize in product((0, 1, 2), (1, 4, 32), (4, 8)):
        lines = kernels.strip_lines(height, width, border, features, itemsize)
        assert min(height, kernels.MIN_LINES) <= lines <= height
        assert lines >= 2 * border or lines == height  # strips share lines with the next one only
        if lines > kernels.MIN_LINES:
            strip_bytes = (lines + 2 * border) * (width + 2 * border) * 8 * features * itemsize
            assert strip_bytes <= kernels.STRIP_BYTES


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("lines", [4, 5, 10])
def test_an_image_in_strips_has_the_bits_of_an_image_in_one_piece_and_the_same_gradients(size, lines, monkeypatch):
    inputs = random_input(size)
    monkeypatch.setattr(kernels, "strip_lines", lambda height, *others: height)
    z, *gradients = run(*inputs)
    monkeypatch.setattr(kernels, "strip_lines", lambda *others: lines)
    z_in_strips, *gradients_in_strips = run(*inputs)
    assert torch.equal(z_in_strips, z)
    for actual, expected in zip(gradients_in_strips, gradients, strict=True):
        assert (actual - expected).abs().max() <= 2e-6 * expected.abs().max()


@pytest.mark.parametrize("size", [1, 3, 5])
def test_each_strip_is_computed_once_and_nothing_else_is_written(size, monkeypatch):
    lines, inputs = 4, random_input(size)
    monkeypatch.setattr(kernels, "strip_lines", lambda *others: lines)
    *arguments, first, last, out = arguments_of("forward", monkeypatch, inputs)
    strips = -(-HEIGHT // lines)
    assert (first, last) == (0, BATCH * strips)
    expected, out = out.reshape(BATCH, HEIGHT, -1).copy(), np.full_like(out, np.nan).reshape(BATCH, HEIGHT, -1)
    for item in range(BATCH * strips):
        kernels.forward(*arguments, item, item + 1, out.reshape(-1))
        image, line = item // strips, item % strips * lines
        np.testing.assert_array_equal(out[image, line : line + lines], expected[image, line : line + lines])
        assert np.isnan(out[image, line + lines :]).all()
        assert np.isnan(out[image + 1 :]).all()


# gradients of blocks of strips


@pytest.mark.parametrize("needs_x", [True, False])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_each_block_of_even_strips_has_its_own_gradients_and_its_own_lines(size, needs_x, monkeypatch):
    """Of 23 images with 2 even strips and 1 odd strip each, 16 blocks of 3 even strips are made."""
    lines, batch = 4, 23
    inputs = random_input(size, batch)
    monkeypatch.setattr(kernels, "strip_lines", lambda *others: lines)
    *arguments, _, parity, block, first, last, sums, g_x = arguments_of("backward", monkeypatch, inputs)
    assert (parity, block, first, last, len(sums)) == (0, 3, 0, 16, 16)
    new_sums, new_g_x, written = np.zeros_like(sums), np.full_like(g_x, np.nan), np.zeros(len(g_x), bool)
    for item in range(16):
        kernels.backward(*arguments, needs_x, parity, block, item, item + 1, new_sums, new_g_x)
        np.testing.assert_array_equal(new_sums[: item + 1], sums[: item + 1])
        assert not new_sums[item + 1 :].any()
        changed = np.isfinite(new_g_x) & ~written
        assert changed.any() == needs_x
        written |= changed
    by_line = written.reshape(batch, HEIGHT + size - 1, -1)
    assert (by_line.all(2) == by_line.any(2)).all()  # whole lines
    expected = np.zeros(HEIGHT + size - 1, bool)
    for start in (0, 2 * lines):
        expected[start : start + lines + size - 1] = needs_x
    assert (by_line.any(2) == expected).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_what_is_added_to_the_shapes_of_stored_gradients_is_ignored(size, dtype, monkeypatch):
    inputs = random_input(size, dtype=dtype)
    expected, backward = run(*inputs), kernels.backward

    def fill_padding(*arguments):
        backward(*arguments)
        sums, start = arguments[-2], 0
        for rows, columns in matrix_shapes(size, IN_FEATURES, OUT_FEATURES):
            stored_rows, stored_columns = kernels.gradient_shape(rows, columns, dtype.itemsize)
            assert stored_rows >= rows
            assert stored_columns >= columns
            end = start + stored_rows * stored_columns
            stored = sums[:, start:end].reshape(-1, stored_rows, stored_columns)
            stored[:, rows:] = np.nan
            stored[:, :, columns:] = np.nan
            sums[:, start:end] = stored.reshape(-1, end - start)
            start = end
        assert start == sums.shape[1]

    monkeypatch.setattr(kernels, "backward", fill_padding)
    actual = run(*inputs)
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


# processors without 512-bit registers

SHORT_REGISTERS = """
import torch
import torch.nn.functional as F
from numba.core.registry import cpu_target
from tigranet.circular_harmonics import basis_size, circular_harmonics
from tigranet.ops import group_convolution
from tigranet.ops.cpu import group_convolution as kernels
from tigranet.ops.group_convolution import rotated_filters

assert not kernels.HAS_LONG_REGISTERS
assert "haswell" in cpu_target.target_context.codegen().magic_tuple()
names = []
for name in ("forward", "backward"):
    function = getattr(kernels, name)
    setattr(kernels, name, lambda *args, name=name, function=function: (names.append(name), function(*args)))
torch.manual_seed(0)
for size in (1, 3, 5):
    for in_features, out_features, height, width in ((2, 2, 3, 4), (6, 4, 20, 17), (4, 12, 1, 30), (10, 8, 9, 9)):
        x = torch.randn(2, 8 * in_features, height + size - 1, width + size - 1)
        x.requires_grad_()
        weight = torch.randn(out_features, in_features, 8, basis_size(size), requires_grad=True)
        basis = torch.from_numpy(circular_harmonics(size, 8)).flatten(2)
        z = group_convolution(x, weight, basis.float())
        expected = F.conv2d(x.double(), rotated_filters(weight.double(), basis))
        g = torch.randn_like(z)
        actual = z, *torch.autograd.grad(z, (x, weight), g)
        exact = expected, *torch.autograd.grad(expected, (x, weight), g.double())
        for a, b in zip(actual, exact, strict=True):
            assert (a - b).abs().max() <= 3e-6 * b.abs().max()
assert names == 12 * ["forward", "backward"]
"""


@pytest.mark.skipif(not binding.get_host_cpu_features().get("avx2"), reason="this processor cannot run the code")
def test_processors_without_long_registers_compute_the_same(torch_process):
    environment = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"}
    process = torch_process.run(SHORT_REGISTERS, environment=environment)
    assert process.returncode == 0, process.stderr
