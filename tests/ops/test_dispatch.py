"""Fused kernels where they fit, plain PyTorch elsewhere, and either one on request."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from oracles import random_graph
from tigranet import DynamicPool, GridLaplacian, SparseLaplacian, SpectralConv, Statistics, TIGraNet
from tigranet.layers import Standardise
from tigranet.ops import dispatch, using
from tigranet.ops.dispatch import operation, why_beyond_cuda_limits, why_unsupported
from tigranet.ops.fallback import KernelUnavailableError


class OperatorRecorder(torch.utils._python_dispatch.TorchDispatchMode):
    """Records which of our operators run."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "tigranet":
            self.names.add(function._opname)
        return function(*args, **(kwargs or {}))


def operators(function):
    with OperatorRecorder() as recorder:
        function()
    return recorder.names


GRID = GridLaplacian(4, 5)


def run_paper_layers(dtype=torch.float32, grid=GRID):
    conv, y = SpectralConv(2, 3, 2).to(dtype), torch.rand(2, 2, grid.num_nodes, dtype=dtype)
    z = conv(y, grid)
    return Statistics(3)(z, grid, DynamicPool(5)(z))


def test_an_operation_prefers_its_fused_version():
    @operation
    def double(x):
        return "reference"

    double.fused(lambda x: "fused")
    double.supported_by_kernels(lambda x: "it is negative" if x < 0 else None)
    assert double(1) == "fused"
    assert double(-1) == double.reference(1) == "reference"
    with using("plain"):
        assert double(1) == "reference"
    with using("fused"):
        assert double(1) == "fused"
        with pytest.raises(KernelUnavailableError, match=r"'double': it is negative.*TIGRANET_KERNELS"):
            double(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_on_a_grid_all_layers_of_the_paper_are_fused(dtype):
    assert operators(lambda: run_paper_layers(dtype)) == {"convolution", "pooling", "statistics"}


def test_on_other_graphs_only_the_pooling_is_fused():
    assert operators(lambda: run_paper_layers(grid=SparseLaplacian(random_graph()))) == {"pooling"}


def test_plain_pytorch_on_request(monkeypatch):
    monkeypatch.setenv("TIGRANET_KERNELS", "plain")
    assert not operators(run_paper_layers)
    with using("fused"):
        assert operators(run_paper_layers)
    assert not operators(run_paper_layers)


def test_where_fused_kernels_are_required_an_error_gives_the_reason(monkeypatch):
    monkeypatch.setenv("TIGRANET_KERNELS", "fused")
    run_paper_layers()
    graph = SparseLaplacian(random_graph())
    with pytest.raises(KernelUnavailableError, match=r"'convolution'.*SparseLaplacian\(.*not a grid.*TIGRANET_KERNELS"):
        run_paper_layers(grid=graph)


@pytest.mark.parametrize("training", [True, False])
def test_standardisation_without_a_kernel_is_an_error_where_fused_ones_are_required(training, monkeypatch):
    layer, z = Standardise(2).half().train(training), torch.rand(3, 2, 5).half()
    assert layer(z).shape == z.shape
    monkeypatch.setenv("TIGRANET_KERNELS", "fused")
    with pytest.raises(KernelUnavailableError, match=r"'standardise.*float16 is neither float32 nor float64"):
        layer(z)


def test_an_unknown_mode_is_an_error(monkeypatch):
    monkeypatch.setenv("TIGRANET_KERNELS", "fast")
    with pytest.raises(ValueError, match=r"TIGRANET_KERNELS.*'fast'"):
        run_paper_layers()


def test_limits_of_a_gpu_are_checked_for_the_backward_kernel_only_if_it_is_needed(monkeypatch):
    def why_kernel_unsupported(grid, itemsize, limits, backward):
        assert (grid.height, grid.width, itemsize, limits) == (4, 5, 4, "limits")
        return "too large" if backward else None

    monkeypatch.setattr(dispatch, "_cuda_limits", lambda device: "limits")
    z = torch.rand(1, 2, 20)
    assert why_beyond_cuda_limits(why_kernel_unsupported, z, GRID, False) is None
    assert why_beyond_cuda_limits(why_kernel_unsupported, z, GRID, True) == "too large"


class TestHalfPrecision:
    def reason(self, monkeypatch, device, dtype, parameter_dtype, **options):
        monkeypatch.setattr(dispatch, "_why_no_kernels", lambda device: None)
        with FakeTensorMode():
            signal = torch.empty(2, 3, 20, dtype=dtype, device=device)
            return why_unsupported(signal, torch.empty(3, dtype=parameter_dtype, device=device), **options)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_operations_that_say_so_read_it_on_a_gpu_with_parameters_in_float32(self, dtype, monkeypatch):
        assert self.reason(monkeypatch, "cuda", dtype, torch.float32, half_on_cuda=True) is None
        for device, parameter_dtype, half_on_cuda in (
            ("cuda", torch.float32, False),
            ("cpu", torch.float32, True),
            ("cuda", dtype, True),
            ("cuda", torch.float64, True),
        ):
            reason = self.reason(monkeypatch, device, dtype, parameter_dtype, half_on_cuda=half_on_cuda)
            assert str(dtype) in reason

    def test_parameters_of_other_signals_have_the_type_of_the_signal(self, monkeypatch):
        assert self.reason(monkeypatch, "cuda", torch.float64, torch.float64, half_on_cuda=True) is None
        assert "float64" in self.reason(monkeypatch, "cuda", torch.float32, torch.float64, half_on_cuda=True)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # from PyTorch itself
def test_function_transforms_use_plain_pytorch():
    z, layer = torch.rand(3, 1, 2, 20, dtype=torch.float64), Statistics(3)
    mapped = torch.func.vmap(lambda z: layer(z, GRID))(z)
    torch.testing.assert_close(mapped, torch.stack([layer(each, GRID) for each in z]))
    jacobian = torch.func.jacrev(lambda z: layer(z, GRID))(z[0])
    _, forward = torch.func.jvp(lambda z: layer(z, GRID), (z[0],), (torch.ones_like(z[0]),))
    torch.testing.assert_close(jacobian.sum((-1, -2, -3)), forward)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(z[0], torch.ones_like(z[0]))
        tangent = torch.autograd.forward_ad.unpack_dual(layer(dual, GRID)).tangent
    torch.testing.assert_close(tangent, forward)


@pytest.mark.parametrize("mode", ["auto", "plain", "fused"])
def test_wrong_shapes_give_the_error_of_the_layer_in_every_mode(mode, without_shape_checks):
    with using(mode), pytest.raises(ValueError, match=r"\(2, 3, 20\) with active nodes \(2, 2, 20\)"):
        Statistics(3)(torch.rand(2, 3, 20), GRID, torch.ones(2, 2, 20, dtype=torch.bool))


def test_wrong_signals_give_the_error_of_the_graph(without_shape_checks):
    with pytest.raises(ValueError, match="20 values"):
        Statistics(3)(torch.rand(2, 3, 21), GRID)
    with pytest.raises(TypeError, match="float32 or float64"):
        Statistics(3)(torch.rand(2, 3, 20).half(), GRID)


def test_a_network_has_the_same_gradients_in_both_modes():
    net, images = TIGraNet("SC[3,2]-DP[40]-SC[4,2]-DP[20]-S[4]-FC[5]", num_classes=3).double(), torch.rand(4, 1, 9, 8)
    gradients = []
    for mode in ("plain", "fused"):
        with using(mode):
            loss = net(images.double()).square().mean()
            gradients.append(torch.autograd.grad(loss, list(net.parameters())))
    for plain, fused in zip(*gradients, strict=True):
        torch.testing.assert_close(plain, fused, rtol=1e-9, atol=1e-12)


def test_importing_loads_neither_numba_nor_cuda_code_and_the_cpu_never_loads_cuda_code(torch_process):
    code = """
import sys, torch, tigranet, tigranet.ops
assert "numba" not in sys.modules
z = torch.rand(1, 1, 20, requires_grad=True)
tigranet.Statistics(2)(z, tigranet.GridLaplacian(4, 5)).sum().backward()
tigranet.TIGraNet("MC[2,1]-OP[1]-S[1]", 2)(torch.rand(1, 1, 4, 5)).sum().backward()
assert "numba" in sys.modules
assert not [name for name in sys.modules if name.startswith("tigranet.ops.cuda")]
"""
    process = torch_process.run(code, environment={"TIGRANET_KERNELS": "fused"})
    assert process.returncode == 0, process.stderr
