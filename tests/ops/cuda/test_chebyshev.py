"""The kernels of Chebyshev polynomials: emulated on the CPU, they agree with the polynomials in plain PyTorch."""

import pytest
import torch

from emulated import H200, emulate, needs_a_compiler
from nvcc import GRID, compile_to_registers, needs_nvcc
from tigranet import GridLaplacian
from tigranet.ops.cuda import chebyshev as kernels
from tigranet.ops.cuda.limits import DeviceLimits
from tigranet.ops.fallback import KernelUnavailableError
from tigranet.ops.grid_spec import GridSpec
from tigranet.polynomials import chebyshev

LARGE = GridSpec(224, 224, 8, False, 1.0)


@needs_nvcc
@pytest.mark.parametrize("summing", [0, 1])
def test_it_compiles_without_spilling_registers(summing):
    plan = kernels.launch_plan(GridSpec(28, 28, 8, False, 1.0), 4, H200)
    report = compile_to_registers("chebyshev", GRID | dict(plan.macros) | {"DEGREE": 3, "SUM": summing})
    assert "0 bytes spill stores" in report


@needs_a_compiler
@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize("size", [(11, 7), (2, 3)])  # three strips of which two overlap; less than one strip
def test_they_agree_with_the_reference_emulated(boundary, size, monkeypatch):
    emulate(monkeypatch)
    grid = GridLaplacian(*size, boundary=boundary, diagonal=0.3)
    y, u = torch.randn(2, 3, grid.num_nodes), torch.randn(2, 16, grid.num_nodes)
    expected = torch.cat(list(chebyshev(y, grid, 3)), dim=1)
    torch.testing.assert_close(kernels.basis(y, 3, GridSpec.of(grid)), expected)
    terms = [list(chebyshev(maps, grid, 7))[order] for order, maps in enumerate(u.chunk(8, dim=1))]
    torch.testing.assert_close(kernels.summed(u, 7, GridSpec.of(grid)), sum(terms))


@needs_a_compiler
def test_each_is_the_adjoint_of_the_other_emulated(monkeypatch):
    emulate(monkeypatch)
    grid = GridSpec(5, 6, 8, True, 1.0)
    y, u = torch.randn(1, 2, 30, dtype=torch.float64), torch.randn(1, 8, 30, dtype=torch.float64)
    torch.testing.assert_close((kernels.basis(y, 3, grid) * u).sum(), (kernels.summed(u, 3, grid) * y).sum())


def test_the_reason_names_the_shared_memory_that_is_needed_and_available():
    limits = DeviceLimits(99 * 1024, 1024, 64 * 1024)
    reason = kernels.why_unsupported(LARGE, 4, limits, backward=True)
    assert reason == "a 224x224 map needs 396 KiB of shared memory, this device has 99 KiB per block"
    assert kernels.why_unsupported(GridSpec(28, 28, 8, False, 1.0), 4, limits, backward=True) is None


def test_wide_rows_need_many_threads():
    assert "1056 threads" in kernels.why_unsupported(GridSpec(2, 1050, 8, False, 1.0), 4, H200, backward=False)


@needs_a_compiler
def test_a_call_that_does_not_fit_is_unavailable_emulated(monkeypatch):
    emulate(monkeypatch)
    with pytest.raises(KernelUnavailableError, match="224x224"):
        kernels.basis(torch.rand(1, 1, 224 * 224), 2, LARGE)
