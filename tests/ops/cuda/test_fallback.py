"""Where a CUDA kernel cannot be compiled or launched, every operator warns once and gives the result of plain PyTorch.

The implementations for CUDA run here on CPU tensors, with fakes for NVRTC and the driver.
"""

from importlib import import_module

import pytest
import torch

from emulated import H200
from fake_cuda import FakeCUDA, install, remove_from_memory
from tigranet import torch_compat
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
from tigranet.ops.cuda import limits as cuda_limits
from tigranet.ops.cuda.limits import DeviceLimits
from tigranet.ops.fallback import KernelUnavailableError, SlowKernelsWarning
from tigranet.ops.grid_spec import GridSpec

GRID = GridSpec(4, 5, 8, False, 1.0)
LARGE_GRID = GridSpec(120, 121, 8, False, 1.0)


def random(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def arguments(grid):
    """The arguments of each operator, by module and name."""
    nodes = grid.num_nodes
    z, mask = random(2, 4, nodes), random(2, 1, nodes) < 0.7
    alpha, beta, moments = random(3, 3), random(4), (random(4), 1 + random(4))
    scale_and_bias, feature_moments = (random(2), random(2)), (random(2), 1 + random(2))
    padded = random(2, 4, grid.height + 2, grid.width + 2)
    phi = import_module("tigranet.ops.statistics").statistics.reference(z, None, 3, 256, grid.laplacian)
    return {
        ("statistics", "forward"): (z, None, 3, 256, grid),
        ("statistics", "backward"): (random(*phi.shape), phi, z, None, 3, 256, grid),
        ("convolution", "forward"): (z, alpha, beta, mask, grid),
        ("convolution", "backward"): (random(2, 3, nodes), z, alpha, beta, mask, True, grid),
        ("pooling", "forward"): (z, mask, 5, False, 1e-4),
        ("chebyshev", "basis_op"): (z, 2, grid),
        ("chebyshev", "sum_op"): (z, 1, grid),
        ("oriented_products", "forward"): (z, 4, grid),
        ("oriented_products", "backward"): (random(2, 8, nodes), z, 4, grid),
        ("standardise", "forward"): (z, None, z, 1e-5, 8),
        ("standardise", "backward"): (random(2, 4, nodes), z, *moments, None, 1e-5, 0),
        ("standardise_eval", "forward"): (z, *moments, 1e-5, None, 8, z),
        ("orientation_norm", "forward"): (z, *scale_and_bias, 1e-5, 1, grid),
        ("orientation_norm", "backward"): (padded, z, *scale_and_bias, *feature_moments, 1e-5, 1, grid),
        ("orientation_norm_eval", "forward"): (z, *feature_moments, *scale_and_bias, 1e-5, 1, grid),
        ("orientation_norm_eval", "backward"): (padded, z, *feature_moments, *scale_and_bias, 1e-5, 1, grid),
        ("coarsening", "forward"): (z, grid),
        ("coarsening", "backward"): (random(2, 4, -(-grid.height // 2) * -(-grid.width // 2)), grid),
    }


OPERATORS = list(arguments(GRID))


@pytest.fixture
def fake(monkeypatch, tmp_path):
    fake = FakeCUDA()
    install(fake, monkeypatch, tmp_path)
    monkeypatch.setattr(cuda_limits, "device_limits", lambda device: H200)

    def clear():
        remove_from_memory()
        for module in (chebyshev, convolution, oriented_products, pooling, standardise, statistics, streamed):
            module._prepare.cache_clear()
        pixel_packs.pixel_kernel.cache_clear()

    clear()
    yield fake
    clear()


def no_nvrtc(fake, monkeypatch):
    fake.compile_error = OSError("Could not find any NVRTC library")


def compile_error(fake, monkeypatch):
    fake.compile_error = RuntimeError("Kernel compilation failed: expected a ';'")


def launch_error(fake, monkeypatch):
    fake.launch_error = 701


def missing_private_function(fake, monkeypatch):
    def missing():
        raise torch_compat.MissingTorchAPIError("PyTorch 9.9 has no torch.cuda._utils._nvrtc_compile")

    monkeypatch.setattr(torch_compat, "nvrtc_compile", missing)


FAILURES = {
    no_nvrtc: "Could not find any NVRTC library",
    compile_error: "expected a ';'",
    launch_error: "too many resources requested",
    missing_private_function: r"no torch\.cuda\._utils\._nvrtc_compile",
}


@pytest.mark.parametrize("operator", OPERATORS, ids="-".join)
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
@pytest.mark.parametrize("grid", [GRID, LARGE_GRID], ids=["small", "large"])
def test_the_result_is_that_of_plain_pytorch(operator, failure, grid, fake, monkeypatch):
    module, name = operator
    custom_op, args = getattr(import_module(f"tigranet.ops.{module}"), name), arguments(grid)[operator]
    failure(fake, monkeypatch)
    is_too_large = grid is LARGE_GRID and module in ("chebyshev", "oriented_products")
    reason = "120x121" if is_too_large else FAILURES[failure]
    with pytest.warns(SlowKernelsWarning, match=reason):
        actual = custom_op._run("cuda", *args)
    expected = custom_op.fallback(*args)
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)
    custom_op._run("cuda", *args)  # without a second warning
    with using("fused"), pytest.raises(KernelUnavailableError, match=reason):
        custom_op._run("cuda", *args)


@pytest.mark.parametrize("operator", OPERATORS, ids="-".join)
def test_small_devices_get_a_result_too(operator, fake, monkeypatch):
    """Without shared memory the operations that need it use plain PyTorch."""
    no_nvrtc(fake, monkeypatch)
    monkeypatch.setattr(cuda_limits, "device_limits", lambda device: DeviceLimits(1024, 1024, 64 * 1024))
    module, name = operator
    custom_op, args = getattr(import_module(f"tigranet.ops.{module}"), name), arguments(GRID)[operator]
    with pytest.warns(SlowKernelsWarning):
        actual = custom_op._run("cuda", *args)
    torch.testing.assert_close(actual, custom_op.fallback(*args), rtol=0, atol=0)
