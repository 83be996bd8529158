"""The CUDA kernels against plain PyTorch on the same device. These tests need a GPU."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from agreement import TOLERANCE, assert_convolutions_agree, assert_statistics_agree, statistics
from model_examples import GROUP_PYRAMID
from oracles import random_grid, random_signal
from tigranet import DynamicPool, GridLaplacian, SpectralConv, Statistics, TIGraNet
from tigranet.ops import (
    chebyshev_basis,
    chebyshev_sum,
    coarsen,
    orientation_norm,
    orientation_norm_eval,
    oriented_products,
    standardise,
    standardise_eval,
    using,
)
from tigranet.ops.cuda import coarsening as coarsening_kernels
from tigranet.ops.cuda import limits as cuda_limits
from tigranet.ops.cuda import nvrtc
from tigranet.ops.cuda.limits import DeviceLimits, device_limits
from tigranet.ops.fallback import KernelUnavailableError
from tigranet.ops.grid_spec import GridSpec
from tigranet.testing import SQUARE, equivariance_error, on_nodes

pytestmark = pytest.mark.gpu
CASES_PER_SEED = 25  # each seed has one grid, order and degree, so that few kernels are compiled


class TestStatisticsConvolutionAndPooling:
    @pytest.mark.parametrize("seed", range(40))
    def test_a_thousand_random_cases_agree_with_the_reference(self, seed):
        rng = np.random.default_rng(seed)
        grid, order, degree = random_grid(rng, 70), int(rng.integers(0, 14)), int(rng.integers(0, 5))
        torch.manual_seed(seed)
        masked = bool(rng.random() < 0.6)
        for _ in range(CASES_PER_SEED):
            y = random_signal(rng, int(rng.integers(1, 4)), 2, grid.num_nodes).cuda()
            conv = SpectralConv(2, 3, degree).to(y)
            omega = torch.from_numpy(rng.random((len(y), 1, grid.num_nodes)) < 0.6).cuda() if masked else None
            assert_convolutions_agree("fused", conv, y, grid, omega, rng)
            with torch.no_grad():
                z = conv(y, grid, omega)
            num_active = int(rng.integers(1, grid.num_nodes + 3))
            results = []
            for mode in ("fused", "plain"):
                with using(mode):
                    strict = DynamicPool(num_active, "strict")(z, omega)
                    results.append((DynamicPool(num_active)(z, omega), strict.sum(-1)))
            for mine, other in zip(*results, strict=True):
                assert torch.equal(mine, other)
            active = results[0][0] if masked else None
            assert_statistics_agree("fused", order, z, grid, active, rng)
            assert_statistics_agree("fused", order, y, grid, None if active is None else active[:, :2], rng)

    @pytest.mark.parametrize("size", [(300, 200), (1, 5000), (5000, 2), (130, 131)])
    @pytest.mark.parametrize("boundary", ["free", "torus"])
    def test_grids_of_any_size_agree_with_the_reference(self, size, boundary):
        rng = np.random.default_rng(0)
        for dtype in (torch.float32, torch.float64):
            grid = GridLaplacian(*size, boundary=boundary)
            y = torch.from_numpy(rng.standard_normal((2, 3, grid.num_nodes))).to("cuda", dtype)
            omega = torch.from_numpy(rng.random((2, 1, grid.num_nodes)) < 0.8).cuda()
            assert_convolutions_agree("fused", SpectralConv(3, 4, 3).to(y), y, grid, omega, rng)
            assert_statistics_agree("fused", 12, y, grid, y > 0, rng)
            assert_statistics_agree("fused", 2, y, grid, None, rng)

    def test_high_orders_agree_with_the_reference(self):
        rng = np.random.default_rng(0)
        grid, z = GridLaplacian(12, 13), torch.rand(2, 3, 156, dtype=torch.float64, device="cuda")
        assert_statistics_agree("fused", 40, z, grid, None, rng)

    def test_more_filters_than_fit_in_shared_memory_agree_with_the_reference(self):
        rng, grid = np.random.default_rng(0), GridLaplacian(28, 28)
        y = torch.from_numpy(rng.standard_normal((2, 4, 784))).to("cuda", torch.float32)
        assert_convolutions_agree("fused", SpectralConv(4, 512, 16).to(y), y, grid, None, rng)

    @pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
    @pytest.mark.parametrize("size", [(4, 5), (26, 26), (50, 50), (100, 120)])
    def test_nan_and_infinity_give_the_results_of_the_reference(self, value, size):
        grid = GridLaplacian(*size)
        for node in (0, grid.num_nodes // 2 + 3, grid.num_nodes - 1):
            z = torch.rand(1, 2, grid.num_nodes, device="cuda")
            z[0, 1, node] = value
            for mask in (None, torch.rand_like(z) < 0.5):
                g = torch.ones(1, 2 * 2 * 5, device="cuda")
                actual, g_actual = statistics("fused", 4, z, grid, mask, g)
                expected, g_expected = statistics("plain", 4, z, grid, mask, g)
                actual, expected = (phi.where(phi.isfinite(), torch.nan) for phi in (actual, expected))
                torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6, equal_nan=True)
                torch.testing.assert_close(g_actual, g_expected, rtol=1e-5, atol=1e-5, equal_nan=True)

    def test_means_of_huge_values_do_not_overflow(self):
        for size in (28, 50, 128):
            z, grid = 1e37 * torch.rand(1, 2, size * size, device="cuda"), GridLaplacian(size, size)
            g = torch.ones(1, 16, device="cuda")
            actual, expected = (statistics(mode, 3, z, grid, None, g)[0][:, ::2] for mode in ("fused", "plain"))
            torch.testing.assert_close(actual, expected, rtol=1e-5, atol=0)

    def test_nearly_constant_maps_have_the_variance_of_the_reference(self):
        for size in (26, 50, 128):
            z, grid = torch.rand(2, 3, size * size, device="cuda") + 100, GridLaplacian(size, size)
            g = torch.ones(2, 3 * 2, device="cuda")
            actual, expected = (statistics(mode, 0, z, grid, None, g)[0] for mode in ("fused", "plain"))
            torch.testing.assert_close(actual, expected, rtol=1e-4, atol=0)

    @pytest.mark.parametrize("size", [26, 120])
    @pytest.mark.parametrize("boundary", ["free", "torus"])
    def test_the_maps_of_a_rotated_image_are_the_rotated_maps_bit_for_bit(self, size, boundary):
        grid, conv = GridLaplacian(size, size, boundary=boundary), SpectralConv(3, 10, 4).cuda()
        y = torch.rand(2, 3, size * size, device="cuda")
        with using("fused"):
            for transform in SQUARE.values():
                assert equivariance_error(lambda y: conv(y, grid), y, on_nodes(transform, size, size)) == 0

    def test_at_most_twice_the_input_is_saved_for_the_backward_pass(self):
        saved = []
        z = torch.randn(2, 5, 128 * 128, device="cuda", requires_grad=True)
        with using("fused"), torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
            Statistics(12)(z, GridLaplacian(128, 128), z.detach() > 0)
        assert 0 < sum(tensor.nbytes for tensor in saved) <= 2 * z.nbytes

    def test_empty_batches_have_gradients(self):
        for size in (5, 130):
            y, grid = torch.rand(0, 2, size * size, device="cuda", requires_grad=True), GridLaplacian(size, size)
            with using("fused"):
                conv = SpectralConv(2, 3, 2).cuda()
                z = conv(y, grid, torch.ones(0, 1, size * size, dtype=torch.bool, device="cuda"))
                Statistics(3)(z, grid).sum().backward()
            assert y.grad.shape == y.shape
            assert (conv.alpha.grad == 0).all()


def result_and_gradient(mode, function, x):
    leaf = x.detach().requires_grad_()
    with using(mode):
        z = function(leaf)
        g = torch.linspace(-1, 1, z.numel(), dtype=z.dtype, device=z.device).reshape(z.shape)
        return z.detach(), torch.autograd.grad(z, leaf, g)[0]


class TestOrientedNetwork:
    @pytest.mark.parametrize("seed", range(20))
    def test_random_cases_agree_with_the_reference(self, seed):
        rng = np.random.default_rng(seed)
        grid, degree, maps = random_grid(rng, 50), int(rng.integers(0, 6)), int(rng.integers(1, 4))
        y = random_signal(rng, 2, maps, grid.num_nodes).cuda()
        u = random_signal(rng, 2, maps * (degree + 1), grid.num_nodes).cuda()
        for operation, x in ((chebyshev_basis, y), (chebyshev_sum, u)):
            (actual, g_actual), (expected, g_expected) = (
                result_and_gradient(mode, lambda x, run=operation: run(x, grid, degree), x)
                for mode in ("fused", "plain")
            )
            assert (actual - expected).abs().max() <= TOLERANCE[x.dtype] * (degree + 1) * x.abs().max(), grid
            assert (g_actual - g_expected).abs().max() <= TOLERANCE[x.dtype] * (degree + 1), grid
        mixtures = random_signal(rng, 2, 2 * maps, grid.num_nodes).cuda()
        for kinds in (2, 4):
            (actual, g_actual), (expected, g_expected) = (
                result_and_gradient(mode, lambda x, kinds=kinds: oriented_products(x, grid, kinds), mixtures)
                for mode in ("fused", "plain")
            )
            assert (actual - expected).abs().max() <= TOLERANCE[mixtures.dtype] * mixtures.abs().max() ** 2, grid
            assert (g_actual - g_expected).abs().max() <= TOLERANCE[mixtures.dtype] * mixtures.abs().max(), grid

    @pytest.mark.parametrize("boundary", ["free", "torus"])
    def test_a_network_gives_the_results_of_the_cpu(self, boundary):
        net = TIGraNet("oriented-small", 3, boundary=boundary).double().eval()
        images = torch.rand(3, 1, 28, 28, dtype=torch.float64)
        with torch.no_grad():
            expected = net(images)
            torch.testing.assert_close(net.cuda()(images.cuda()).cpu(), expected, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("size", [28, 64, 96, 224])
    def test_a_step_of_training_works_at_every_size(self, size):
        net = TIGraNet("oriented-small", 3).cuda()
        net(torch.rand(2, 1, size, size, device="cuda")).square().sum().backward()
        assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())

    @pytest.mark.parametrize("size", [(64, 64), (96, 96), (37, 53)])
    @pytest.mark.parametrize("boundary", ["free", "torus"])
    @pytest.mark.parametrize("kinds", [2, 4])
    def test_products_with_little_shared_memory_agree_with_the_reference(self, size, boundary, kinds, monkeypatch):
        grid = GridLaplacian(*size, boundary=boundary)
        limits = DeviceLimits(4 * 4 * grid.num_nodes, 1024, 64 * 1024)  # room for four maps
        if limits.shared_memory_per_block > device_limits(torch.device("cuda", 0)).shared_memory_per_block:
            pytest.skip("this device has too little shared memory for the compact kernel too")
        monkeypatch.setattr(cuda_limits, "device_limits", lambda device: limits)
        mixtures = torch.randn(3, 4, grid.num_nodes, device="cuda")
        (actual, g_actual), (expected, g_expected) = (
            result_and_gradient(mode, lambda x: oriented_products(x, grid, kinds), mixtures)
            for mode in ("fused", "plain")
        )
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(g_actual, g_expected, rtol=1e-4, atol=1e-4)

    def test_maps_that_do_not_fit_name_the_limit_of_this_device(self):
        mixtures, grid = torch.rand(1, 2, 500 * 500, device="cuda"), GridLaplacian(500, 500)
        limit = device_limits(mixtures.device).shared_memory_per_block // 1024
        with using("fused"), pytest.raises(KernelUnavailableError, match=f"500x500.*{limit} KiB"):
            oriented_products(mixtures, grid, 4)


VARIANTS = {"alone": (False, 0, 0), "bias and ReLU": (True, 0, 0), "root": (False, 8, 0), "after maps": (False, 8, 2)}
"""Whether there is a bias, the number of deviations above which values grow as a root, and maps in front."""


class TestStandardise:
    @pytest.mark.parametrize("variant", VARIANTS)
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("shape", [(250, 64, 676), (1, 1, 2), (3, 5, 9000), (37, 2, 100)])
    def test_it_agrees_with_batch_normalisation(self, shape, dtype, variant):
        torch.manual_seed(0)
        has_bias, large, maps_in_front = VARIANTS[variant]
        z = (3 * torch.randn(shape, dtype=dtype, device="cuda") + 10).requires_grad_()
        bias = torch.randn(shape[1], 1, dtype=dtype, device="cuda").requires_grad_() if has_bias else None
        first = torch.randn(shape[0], maps_in_front, shape[2], dtype=dtype, device="cuda").requires_grad_()
        after = first if maps_in_front else None
        leaves = [leaf for leaf in (z, bias, after) if leaf is not None]
        spread, centre = torch.var_mean(z, (0, 2), correction=0, keepdim=True)
        x = (z - centre) * (spread + 1e-5).rsqrt()
        x = torch.relu(x + bias) if has_bias else x * (1 + x.abs() / large).rsqrt() if large else x
        expected = x if after is None else torch.cat((after, x), dim=1)
        g = torch.randn_like(expected)
        with using("fused"):
            actual, mean, variance = standardise(z, bias, after, 1e-5, large)
            gradients = torch.autograd.grad(actual, leaves, g)
        rtol = 1e-3 if dtype == torch.float32 else 1e-10
        assert torch.isclose(actual, expected, rtol=rtol, atol=rtol / 10).all()
        torch.testing.assert_close(variance, z.detach().var((0, 2), correction=0), rtol=rtol, atol=0)
        torch.testing.assert_close(mean, z.detach().mean((0, 2)), rtol=rtol, atol=0)
        for mine, other in zip(gradients, torch.autograd.grad(expected, leaves, g), strict=True):
            scale = float(other.abs().max()) + 1e-6
            share_of_errors = ((mine - other).abs() > 10 * rtol * scale).float().mean()
            assert share_of_errors <= (1e-4 if has_bias else 0)  # rounding decides at the kink of the ReLU

    @pytest.mark.parametrize("variant", VARIANTS)
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("shape", [(250, 64, 676), (1, 1, 2), (3, 5, 9000), (37, 2, 101)])
    def test_evaluation_agrees_with_the_reference(self, shape, dtype, variant):
        has_bias, large, maps_in_front = VARIANTS[variant]
        z = 3 * torch.randn(shape, dtype=dtype, device="cuda") + 10
        mean, variance = z.mean((0, 2)), 1 + torch.rand(shape[1], dtype=dtype, device="cuda")
        bias = torch.randn(shape[1], 1, dtype=dtype, device="cuda") if has_bias else None
        after = torch.randn(shape[0], maps_in_front, shape[2], dtype=dtype, device="cuda") if maps_in_front else None
        args = (z, mean, variance, 1e-5, bias, large, after)
        with using("fused"):
            actual = standardise_eval(*args)
        rtol = 1e-5 if dtype == torch.float32 else 1e-12
        torch.testing.assert_close(actual, standardise_eval.reference(*args), rtol=rtol, atol=10 * rtol)

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_it_has_a_second_derivative_and_a_correct_schema(self, variant):
        has_bias, large, maps_in_front = VARIANTS[variant]
        z = torch.randn(4, 2, 6, dtype=torch.float64, device="cuda", requires_grad=True)
        bias = torch.rand(2, 1, dtype=torch.float64, device="cuda", requires_grad=True) if has_bias else None
        first = torch.rand(4, 2, 6, dtype=torch.float64, device="cuda", requires_grad=True)
        after = first if maps_in_front else None
        assert torch.autograd.gradgradcheck(lambda z: standardise(z, bias, after, 1e-3, large)[0], z)
        operator = torch.ops.tigranet.standardise.default
        torch.library.opcheck(operator, (z, bias, after, 1e-3, large), test_utils="test_schema")


EPS = 1e-5
PYRAMID_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 2**-7, torch.float16: 2**-10}
"""Relative to the size of the result; the reference of half precision is computed in float32."""
PYRAMID_SHAPES = [
    (1, 4, 1, 1, 3, 0),
    (3, 8, 3, 6, 4, 2),
    (1, 1, 2, 3, 2, 3),
    (2, 7, 43, 5, 3, 1),
    (50, 8, 12, 32, 32, 2),
    (2, 8, 128, 17, 16, 0),
    (1, 8, 300, 9, 8, 1),
]
"""Batch, orientations, features, height, width and border."""


def pixel_by_pixel(y):
    return y.transpose(1, 2).contiguous().transpose(1, 2)


def pyramid_inputs(batch, orientations, features, nodes, dtype):
    """Return features with different means and scales, and a factor and a term per feature."""
    torch.manual_seed(0)
    real = torch.float64 if dtype == torch.float64 else torch.float32
    y = torch.randn(batch, orientations, features, nodes, dtype=real, device="cuda")
    y = y * (0.1 + 5 * torch.rand(features, 1, dtype=real, device="cuda"))
    y = y + 10 * torch.randn(features, 1, dtype=real, device="cuda")
    scale, bias = (torch.randn(features, dtype=real, device="cuda") for _ in range(2))
    return pixel_by_pixel(y.flatten(1, 2)).to(dtype), scale, bias


def assert_near(actual, expected, tolerance, size=None, share_of_errors=0.0):
    assert actual.shape == expected.shape
    size = expected.abs().amax() if size is None else size
    error = ~((actual.to(expected.dtype) - expected).abs() <= tolerance * (expected.abs() + size))
    assert error.double().mean() <= share_of_errors


def with_gradients(function, inputs, g):
    """Return a result and the gradients by the inputs."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    z = function(*leaves)
    return z.detach(), *torch.autograd.grad(z, leaves, g.to(z.dtype))


class TestPyramid:
    @pytest.mark.parametrize("known_moments", [False, True])
    @pytest.mark.parametrize("dtype", list(PYRAMID_TOLERANCE))
    @pytest.mark.parametrize("torus", [False, True])
    @pytest.mark.parametrize("shape", PYRAMID_SHAPES)
    def test_normalised_features_and_gradients_agree_with_the_reference(self, shape, torus, dtype, known_moments):
        batch, orientations, features, height, width, border = shape
        grid, tolerance = GridSpec(height, width, 8, torus, 1.0), PYRAMID_TOLERANCE[dtype]
        y, scale, _ = inputs = pyramid_inputs(batch, orientations, features, height * width, dtype)
        real = [x.to(scale.dtype) for x in inputs]
        columns = real[0].unflatten(1, (orientations, features))
        variance, mean = torch.var_mean(columns, (0, 1, 3), correction=0)

        def norm(y, scale, bias):
            if known_moments:
                return orientation_norm_eval(y, mean, variance, scale, bias, EPS, border, grid)
            return orientation_norm(y, scale, bias, EPS, border, grid)[0]

        padded = (batch, y.shape[1], height + 2 * border, width + 2 * border)
        g = torch.randn(padded, device="cuda").to(dtype)
        with using("fused"):
            actual = with_gradients(norm, inputs, g)
            if not known_moments:
                _, *moments = orientation_norm(*inputs, EPS, border, grid)
                torch.testing.assert_close(moments[0], mean, rtol=1e-5, atol=1e-5)
                torch.testing.assert_close(moments[1], variance, rtol=1e-4, atol=1e-6)
        with using("plain"):
            expected = with_gradients(norm, real, g)
        assert actual[0].dtype == actual[1].dtype == dtype
        assert actual[0].is_contiguous(memory_format=torch.channels_last)
        assert_near(actual[0], expected[0], tolerance)
        size = float(g.abs().max()) * (1 + 2 * border) ** 2
        by_map = ((variance + EPS).sqrt() / scale.abs()).repeat(orientations)[:, None]
        assert_near(actual[1] * by_map, expected[1] * by_map, tolerance, size, share_of_errors=1e-3)
        for mine, other in zip(actual[2:], expected[2:], strict=True):
            assert_near(mine, other, tolerance, size * (y.numel() / features) ** 0.5)

    @pytest.mark.parametrize("dtype", list(PYRAMID_TOLERANCE))
    @pytest.mark.parametrize("boundary", ["free", "torus"])
    @pytest.mark.parametrize("size", [(3, 3), (4, 7), (1, 9), (32, 32), (64, 33), (5, 2)])
    def test_coarse_maps_and_gradients_agree_with_the_reference(self, size, boundary, dtype):
        grid, tolerance = GridLaplacian(*size, boundary=boundary), PYRAMID_TOLERANCE[dtype]
        real = torch.float64 if dtype == torch.float64 else torch.float32
        for batch, maps in [(1, 1), (2, 3), (3, 96), (1, 4096)]:
            y = torch.randn(batch, maps, grid.num_nodes, device="cuda").to(dtype)
            g = torch.randn(batch, maps, grid.coarsening.laplacian.num_nodes, device="cuda").to(dtype)
            with using("plain"):
                expected = with_gradients(lambda y: coarsen(y, grid), [y.to(real)], g)
            for signal in (y, pixel_by_pixel(y)):
                with using("fused"):
                    actual = with_gradients(lambda y: coarsen(y, grid), [signal], g)
                for mine, other in zip(actual, expected, strict=True):
                    assert mine.dtype == dtype
                    assert_near(mine, other, tolerance)

    @pytest.mark.parametrize("size", [32, 33])
    def test_coarse_maps_turn_with_the_image_bit_for_bit(self, size):
        grid, coarse = GridLaplacian(size, size), -(-size // 2)
        y = torch.randn(2, 16, size**2, device="cuda")
        with using("fused"):
            for move in SQUARE.values():
                moves = on_nodes(move, size, size), on_nodes(move, coarse, coarse)
                assert equivariance_error(lambda y: coarsen(y, grid), y, *moves) == 0

    @pytest.mark.parametrize("far", [1e4, -3e5])
    def test_features_far_from_zero_keep_their_variance(self, far):
        y = far + torch.randn(40, 16, 900, device="cuda")
        parameters = torch.ones(2, device="cuda"), torch.zeros(2, device="cuda")
        with using("fused"):
            _, mean, variance = orientation_norm(y, *parameters, EPS, 0, GridSpec(30, 30, 8, False, 1.0))
        columns = y.double().unflatten(1, (8, 2))
        torch.testing.assert_close(mean, columns.mean((0, 1, 3)).float())
        torch.testing.assert_close(variance, columns.var((0, 1, 3), correction=0).float(), rtol=1e-5, atol=0)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_the_same_input_gives_the_same_bits(self, dtype):
        inputs, grid = pyramid_inputs(50, 8, 12, 32 * 32, dtype), GridSpec(32, 32, 8, False, 1.0)
        g = torch.randn(50, 96, 36, 36, device="cuda")
        with using("fused"):
            first, *others = (
                with_gradients(lambda *x: orientation_norm(*x, EPS, 2, grid)[0], inputs, g) for _ in range(5)
            )
        for other in others:
            assert all(torch.equal(a, b) for a, b in zip(first, other, strict=True))

    @pytest.mark.parametrize("boundary", ["free", "torus"])
    def test_a_training_step_under_autocast_agrees_with_plain_pytorch(self, boundary):
        torch.manual_seed(0)
        net = TIGraNet(GROUP_PYRAMID, 3, boundary=boundary).cuda()
        images, truth, results = torch.rand(16, 1, 33, 32, device="cuda"), [], {}
        for mode, autocast in (("plain", False), ("plain", True), ("fused", True)):
            with using(mode), torch.autocast("cuda", torch.bfloat16, enabled=autocast):
                loss = net(images).float().square().mean()
            gradients = torch.autograd.grad(loss, list(net.parameters()))
            flat = torch.cat([loss.detach().reshape(1), *(gradient.flatten() for gradient in gradients)])
            if not autocast:
                truth.append(flat)
            else:
                results[mode] = (flat - truth[0]).norm() / truth[0].norm()
        assert results["fused"] <= 1.5 * results["plain"] + 1e-3  # no further from float32 than plain PyTorch

    def test_autocast_runs_the_kernels(self):
        net, names = TIGraNet(GROUP_PYRAMID, 3).cuda(), []
        launch = nvrtc.launch

        def recorded(kernel, *args):
            names.append(kernel.name)
            launch(kernel, *args)

        with pytest.MonkeyPatch.context() as patch, torch.autocast("cuda", torch.bfloat16):
            patch.setattr(nvrtc, "launch", recorded)
            net(torch.rand(4, 1, 32, 32, device="cuda")).float().sum().backward()
        expected = {"moments", "merge", "rectify", "gradient_sums", "gradient_totals", "gradient"}
        assert expected | {"coarsen", "coarsen_backward"} <= set(names)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_forward_and_backward_are_recorded_into_a_cuda_graph(self, dtype):
        inputs, laplacian = pyramid_inputs(8, 8, 4, 256, dtype), GridLaplacian(16, 16)
        leaves, stream = [x.requires_grad_() for x in inputs], torch.cuda.Stream()

        def run():
            z = orientation_norm(*leaves, EPS, 2, GridSpec.of(laplacian))[0]
            z = orientation_norm_eval(z.flatten(2)[..., :256], *(torch.ones(4, device="cuda"),) * 4, EPS, 0, square)
            return torch.autograd.grad(coarsen(z.flatten(2), laplacian).float().square().sum(), leaves)

        square = GridSpec(16, 16, 8, False, 1.0)
        with using("fused"):
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                run()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                recorded = run()
            with torch.no_grad():
                inputs[0].copy_(torch.randn_like(inputs[0]))
            graph.replay()
            for mine, other in zip(recorded, run(), strict=True):
                assert torch.equal(mine, other)

    def test_second_derivatives_and_schemas(self):
        y, scale, bias = (x.requires_grad_() for x in pyramid_inputs(2, 4, 2, 6, torch.float64))
        moments = [torch.rand(2, dtype=torch.float64, device="cuda") for _ in range(2)]
        grid = GridSpec(2, 3, 8, True, 1.0)
        with using("fused"):
            assert torch.autograd.gradgradcheck(lambda *x: orientation_norm(*x, EPS, 1, grid)[0], (y, scale, bias))
            assert torch.autograd.gradgradcheck(
                lambda y, *x: orientation_norm_eval(y, *moments, *x, EPS, 1, grid), (y, scale, bias)
            )
            assert torch.autograd.gradgradcheck(lambda y: coarsen(y, GridLaplacian(2, 3)) ** 2, y)
        operators = torch.ops.tigranet
        torch.library.opcheck(operators.orientation_norm.default, (y, scale, bias, EPS, 1, *grid))
        torch.library.opcheck(operators.orientation_norm_eval.default, (y, *moments, scale, bias, EPS, 1, *grid))
        g = torch.rand(2, 4, 5, 8, dtype=torch.float64, device="cuda").permute(0, 3, 1, 2)
        arguments = (g, *(x.detach() for x in (y, *moments, scale, bias)), EPS, 1, *grid)
        torch.library.opcheck(operators.orientation_norm_eval_backward.default, arguments)

    def test_more_numbers_than_32_bits_count(self):
        pixels, maps = 2**27 + 2**13, 16  # 2**31 numbers and some more
        if torch.cuda.mem_get_info()[0] < 8 * pixels * maps:
            pytest.skip("too little memory on this device")
        grid = GridSpec(pixels // 2**13, 2**13, 8, False, 1.0)  # its Laplacian would take longer than the kernels
        y = torch.zeros(1, pixels, maps, dtype=torch.bfloat16, device="cuda").transpose(1, 2)
        last = torch.randn(1, maps, 2**13, device="cuda").bfloat16()
        y[..., -(2**13) :] = last
        parameters = [torch.full((2,), value, device="cuda") for value in (0.1, 2.0, 1.0, 0.5)]
        with using("fused"), torch.no_grad():
            z = orientation_norm_eval(y, *parameters, EPS, 0, grid)[:, :, -1]
            expected = orientation_norm_eval(last, *parameters, EPS, 0, GridSpec(1, 2**13, 8, False, 1.0))[:, :, 0]
            assert torch.equal(z, expected)
            _, mean, _ = orientation_norm(y, *parameters[2:], EPS, 0, grid)
            total = last.double().unflatten(1, (8, 2)).sum((0, 1, 3))
            torch.testing.assert_close(mean, (total / (8 * pixels)).float(), rtol=1e-3, atol=1e-9)
            coarse = coarsening_kernels.forward(y, grid)[..., -(2**12) :]
            rows = torch.cat((torch.zeros_like(last), torch.zeros_like(last), last), dim=2)  # odd in height, too
            expected = coarsening_kernels.forward(rows, GridSpec(3, 2**13, 8, False, 1.0))[..., -(2**12) :]
            assert torch.equal(coarse, expected)


def test_kernels_are_recorded_into_a_cuda_graph():
    grid, conv, pool = GridLaplacian(28, 28), SpectralConv(2, 3, 2).cuda(), DynamicPool(100)
    y, stream = torch.rand(4, 2, 784, device="cuda"), torch.cuda.Stream()

    def run():
        z = conv(y, grid)
        return Statistics(4)(z, grid, pool(z))

    with using("fused"), torch.no_grad():
        with torch.cuda.stream(stream):
            run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            recorded = run()
        y.copy_(torch.rand_like(y))
        graph.replay()
        torch.testing.assert_close(recorded, run(), rtol=0, atol=0)


@pytest.mark.parametrize("device", range(max(1, torch.cuda.device_count())))
def test_every_device_of_the_machine_gives_the_same(device):
    grid, z = GridLaplacian(9, 9), torch.rand(2, 2, 81)
    with using("fused"):
        actual = Statistics(4)(z.to(f"cuda:{device}"), grid)
    torch.testing.assert_close(actual.cpu(), Statistics(4)(z, grid), rtol=1e-5, atol=1e-6)


BACKWARD_WITHOUT_KERNEL = """
import warnings
import torch
from tigranet import GridLaplacian, Statistics
from tigranet.ops import using
from tigranet.ops.cuda import statistics
from tigranet.ops.fallback import KernelUnavailableError, SlowKernelsWarning

def unavailable(*args):
    raise KernelUnavailableError("a reason")

statistics.backward = unavailable
z, gradients = torch.rand(2, 2, 81, device="cuda", requires_grad=True), []
for mode in ("auto", "plain"):
    with using(mode), warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        gradients += torch.autograd.grad(Statistics(4)(z, GridLaplacian(9, 9)).square().sum(), z)
    assert [message.category for message in messages] == [SlowKernelsWarning] * (mode == "auto"), messages
torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
print("equal")
"""


COMPILED_PYRAMID = """
import torch
from tigranet import GridLaplacian
from tigranet.layers import Coarsen, OrientationNorm
from tigranet.ops import using

norm, grid = OrientationNorm(3, 8).cuda(), GridLaplacian(9, 8)
y = torch.randn(4, 72, 24, device="cuda").transpose(1, 2).bfloat16().requires_grad_()

def run(y):
    return norm(Coarsen()(norm(y, grid), grid), grid.coarsening.laplacian, 2)

with using("fused"):
    for training in (True, False):
        norm.train(training)
        results = []
        for function in (run, torch.compile(run, fullgraph=True, backend="aot_eager")):
            z = function(y)
            results.append((z.detach(), *torch.autograd.grad(z.float().square().sum(), y)))
        for mine, other in zip(*results, strict=True):
            assert torch.equal(mine, other)
print("equal")
"""


def assert_prints_equal(program):
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert process.stdout == "equal\n", process.stderr


def test_a_backward_pass_without_its_kernel_uses_plain_pytorch_and_does_not_wait_for_itself():
    assert_prints_equal(BACKWARD_WITHOUT_KERNEL)


def test_compiled_layers_of_a_pyramid_give_the_same():
    assert_prints_equal(COMPILED_PYRAMID)
