"""On devices with other limits than an H200, every operation takes a path that fits.

A path is a launch plan within the limits, or streaming, or a reason and then plain PyTorch.
"""

import numpy as np
import pytest
import torch

from agreement import assert_convolutions_agree, assert_statistics_agree
from emulated import H200, emulate, needs_a_compiler
from tigranet import DynamicPool, GridLaplacian, SpectralConv
from tigranet.ops import oriented_products as oriented_products_operation
from tigranet.ops import using
from tigranet.ops.cuda import (
    chebyshev,
    convolution,
    oriented_products,
    pixel_packs,
    pooling,
    standardise,
    statistics,
    streamed,
)
from tigranet.ops.cuda.launch_plan import LaunchPlan
from tigranet.ops.cuda.limits import DeviceLimits
from tigranet.ops.grid_spec import GridSpec
from tigranet.polynomials import chebyshev as chebyshev_terms

KIB = 1024
LIMITS = [
    DeviceLimits(shared * KIB, threads, registers * KIB)
    for shared in (48, 64, 99, 163, 227)
    for threads in (512, 1024)
    for registers in (32, 64)
]
SIZES = [28, 64, 96, 224]
FILTERS = [(1, 10, 5), (10, 20, 5), (64, 64, 4), (256, 256, 9)]  # inputs, outputs, coefficients


def grid_of(size: int) -> GridSpec:
    return GridSpec(size, size, 8, False, 1.0)


def assert_fits(plan: LaunchPlan, limits: DeviceLimits) -> None:
    assert plan.threads <= limits.threads_per_block
    assert plan.threads * plan.registers <= limits.registers_per_block
    assert plan.dynamic_shared_memory + plan.static_shared_memory <= limits.shared_memory_per_block
    assert plan.static_shared_memory <= 48 * KIB


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("backward", [False, True])
class TestEveryOperationHasAPathThatFits:
    def test_statistics(self, size, itemsize, backward):
        for limits in LIMITS:
            plan = statistics.launch_plan(grid_of(size), itemsize, limits, backward, 12)
            if isinstance(plan, str):
                assert size >= 64, "a map of 28x28 stays in registers on every device"
                assert_fits(streamed.STEP_PLAN, limits)
            else:
                assert_fits(plan, limits)

    @pytest.mark.parametrize("filters", FILTERS)
    def test_convolution(self, size, itemsize, backward, filters):
        for limits in LIMITS:
            plan = convolution.launch_plan(grid_of(size), itemsize, limits, backward, *filters)
            if isinstance(plan, str):
                assert_fits(streamed.STEP_PLAN, limits)
                assert_fits(streamed.COMBINE_PLAN, limits)
                assert_fits(streamed.dots_plan(filters[2], itemsize), limits)
            else:
                assert_fits(plan, limits)
                macros = dict(plan.macros)
                assert macros["THREADS"] * macros["ITEMS"] >= size * size
                assert size < 224

    def test_pooling(self, size, itemsize, backward):
        for limits in LIMITS:
            plan = pooling.launch_plan(size * size, itemsize, limits)
            assert_fits(plan, limits)
            macros = dict(plan.macros)
            assert 32 * macros["WARPS"] * macros["ITEMS"] >= size * size
            assert 32 * macros["WARPS"] * macros["MAPS"] == plan.threads

    def test_chebyshev(self, size, itemsize, backward):
        for limits in LIMITS:
            plan = chebyshev.launch_plan(grid_of(size), itemsize, limits)
            reason = chebyshev.why_unsupported(grid_of(size), itemsize, limits, backward)
            if isinstance(plan, str):
                assert reason == plan
                assert f"{size}x{size}" in reason
                assert size > 28
            else:
                assert reason is None
                assert_fits(plan, limits)

    def test_oriented_products(self, size, itemsize, backward):
        for limits in LIMITS:
            plan = oriented_products.launch_plan(grid_of(size), itemsize, limits, backward)
            reason = oriented_products.why_unsupported(grid_of(size), itemsize, limits, backward)
            if isinstance(plan, str):
                assert reason == plan
                assert f"{limits.shared_memory_per_block // KIB} KiB" in reason
                assert 4 * size * size * itemsize > limits.shared_memory_per_block
            else:
                assert reason is None
                assert_fits(plan, limits)

    def test_standardise(self, size, itemsize, backward):
        for limits in LIMITS:
            assert_fits(standardise.launch_plan(size * size), limits)

    def test_orientation_norm_and_coarsening(self, size, itemsize, backward):
        for limits in LIMITS:
            for stored_itemsize in (itemsize, 2):
                assert_fits(pixel_packs.launch_plan(stored_itemsize), limits)


SMALLEST, TINY = LIMITS[0], DeviceLimits(48 * KIB, 256, 8 * KIB)


@needs_a_compiler
@pytest.mark.parametrize("limits", [SMALLEST, TINY], ids=lambda limits: str(limits[1]))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
class TestResultsAtTwentyEightPixelsEmulated:
    grid = GridLaplacian(28, 28)
    spec = GridSpec.of(grid)

    def signal(self, maps, dtype):
        return torch.from_numpy(np.random.default_rng(0).standard_normal((1, maps, 784))).to(dtype)

    def test_statistics(self, limits, dtype, monkeypatch):
        emulate(monkeypatch, limits)
        rng = np.random.default_rng(0)
        assert_statistics_agree("emulated", 3, self.signal(2, dtype), self.grid, None, rng)

    def test_convolution(self, limits, dtype, monkeypatch):
        emulate(monkeypatch, limits)
        rng, conv = np.random.default_rng(0), SpectralConv(2, 3, 2).to(dtype)
        assert_convolutions_agree("emulated", conv, self.signal(2, dtype), self.grid, None, rng)

    def test_pooling(self, limits, dtype, monkeypatch):
        emulate(monkeypatch, limits)
        z, layer = self.signal(2, dtype), DynamicPool(100)
        with using("plain"):
            assert torch.equal(pooling.forward(z, None, 100, False, layer.tolerance), layer(z))

    def test_chebyshev(self, limits, dtype, monkeypatch):
        emulate(monkeypatch, limits)
        y, u = self.signal(1, dtype), self.signal(3, dtype)
        expected = torch.cat(list(chebyshev_terms(y, self.grid, 2)), dim=1)
        torch.testing.assert_close(chebyshev.basis(y, 2, self.spec), expected)
        terms = [list(chebyshev_terms(u[:, [m]], self.grid, 2))[m] for m in range(3)]
        torch.testing.assert_close(chebyshev.summed(u, 2, self.spec), sum(terms))

    def test_oriented_products(self, limits, dtype, monkeypatch):
        emulate(monkeypatch, limits)
        mixtures = self.signal(2, dtype).requires_grad_()
        expected = oriented_products_operation.reference(mixtures, self.grid, 4)
        g = torch.linspace(-1, 1, expected.numel(), dtype=dtype).reshape(expected.shape)
        (g_expected,) = torch.autograd.grad(expected, mixtures, g)
        z = mixtures.detach()
        torch.testing.assert_close(oriented_products.forward(z, 4, self.spec), expected.detach())
        torch.testing.assert_close(oriented_products.backward(g, z, 4, self.spec), g_expected)


# On an H200, the plans are those with which it was measured. The formulas below are copies of the ones at that time.


def old_register_layout(height, width, wide, backward):
    best = None
    for columns in range(1, min(width, 8) + 1):
        across = -(-width // columns)
        for groups in range(1, 32 // across + 1):
            for warps in range(1, 33) if groups == 1 else (1,):
                rows = -(-height // (groups * warps))
                nodes = rows * columns
                taken = nodes * (4 * wide + 2) + 90 if backward else (2 * nodes + 8 * columns) * wide + 40
                blocks = 4 * (512 // min(taken, 255)) // warps
                shared = warps * 4 * columns * 32 * 4 * wide
                empty = -(-height // rows) != groups * warps
                if empty or taken > (310 if backward else 250) or not blocks or shared > 30_000:
                    continue
                cost = nodes + 5 * columns if backward else 7 * nodes + 2.4 * rows + 20 * columns + 34
                cost *= warps * (1 + 3 / (blocks * warps))
                if backward:
                    cost *= (1.3 if taken > 255 else 1) * (1.2 if warps > 2 and warps % 4 else 1)
                maps = 2 if warps == 1 and taken <= 128 else 1
                layout = (columns, groups, rows, warps, maps, 1 if warps == 1 else min(blocks, 16))
                if best is None or cost < best[0]:
                    best = cost, layout
    return best and best[1]


def old_strips(height, width):
    across = 32 * -(-width // 32)
    rows = -(-height // min(-(-height // 4), 1024 // across))
    return rows, (across, -(-height // rows), 1)


SIZES_ON_AN_H200 = range(8, 97)


@pytest.mark.parametrize("itemsize", [4, 8])
class TestPlansOnAnH200:
    @pytest.mark.parametrize("backward", [False, True])
    def test_statistics(self, itemsize, backward):
        for size in SIZES_ON_AN_H200:
            plan = statistics.launch_plan(grid_of(size), itemsize, H200, backward, 12)
            layout = old_register_layout(size, size, itemsize // 4, backward)
            if layout is None:
                assert isinstance(plan, str)
                continue
            macros = dict(plan.macros)
            assert layout == tuple(macros[name] for name in ("COLUMNS", "BANDS", "ROWS", "WARPS", "MAPS", "BLOCKS"))
            assert plan.block == (32, macros["WARPS"] * macros["MAPS"], 1)
            assert plan.maps_per_block == macros["MAPS"]

    @pytest.mark.parametrize("backward", [False, True])
    @pytest.mark.parametrize("filters", FILTERS)
    def test_convolution(self, itemsize, filters, backward):
        inputs, outputs, coefficients = filters
        for size in SIZES_ON_AN_H200:
            plan = convolution.launch_plan(grid_of(size), itemsize, H200, backward, *filters)
            threads = min(1024, max(128, 32 * -(-size * size // 96)))
            shared = (size + 2) ** 2 + (threads // 32 * max(outputs * coefficients, inputs) if backward else 0)
            in_shared = (size + 2) ** 2 * itemsize <= 40 * KIB
            if not in_shared or shared * itemsize > 227 * KIB:
                assert isinstance(plan, str)
                continue
            assert plan.block == (threads, 1, 1)
            assert plan.dynamic_shared_memory == shared * itemsize
            assert dict(plan.macros)["ITEMS"] == -(-size * size // threads)

    def test_pooling(self, itemsize):
        for size in SIZES_ON_AN_H200:
            plan, nodes = pooling.launch_plan(size * size, itemsize, H200), size * size
            warps = min(32, -(-nodes // (32 * 24)))
            items, maps = -(-nodes // (32 * warps)), 4 if warps == 1 else 1
            macros = dict(plan.macros)
            assert plan.block == (32, warps * maps, 1)
            assert plan.maps_per_block == macros["MAPS"] == maps
            assert (macros["WARPS"], macros["ITEMS"]) == (warps, items)
            assert macros["KEYS_IN_REGISTERS"] == (items * (itemsize // 4) <= 48)

    def test_chebyshev(self, itemsize):
        for size in SIZES_ON_AN_H200:
            plan = chebyshev.launch_plan(grid_of(size), itemsize, H200)
            if (size + 2) ** 2 * itemsize > 40 * KIB:
                assert isinstance(plan, str)
                continue
            rows, block = old_strips(size, size)
            assert plan.block == block
            assert dict(plan.macros)["ROWS"] == rows
            assert plan.dynamic_shared_memory == 2 * (size + 1) ** 2 * itemsize

    @pytest.mark.parametrize("backward", [False, True])
    def test_oriented_products(self, itemsize, backward):
        for size in SIZES_ON_AN_H200:
            plan = oriented_products.launch_plan(grid_of(size), itemsize, H200, backward)
            if 8 * size * size * itemsize > 200 * KIB:  # larger maps used plain PyTorch
                continue
            rows, block = old_strips(size, size)
            assert plan.block == block
            assert dict(plan.macros)["ROWS"] == rows
            assert plan.dynamic_shared_memory == (8 if backward else 6) * size * size * itemsize
            assert dict(plan.macros)["COMPACT"] == 0
