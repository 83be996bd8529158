"""Operators that are called directly, or through PyTorch's dispatcher where something observes them."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from tigranet import GridLaplacian, Statistics
from tigranet.ops.custom_op import CustomOp, gradients_in_new_thread, reference_gradients
from tigranet.ops.grid_spec import GridSpec
from tigranet.ops.statistics import forward as statistics_op

GRID = GridLaplacian(4, 5)
ARGUMENTS = (None, 3, Statistics.ROUNDING, GridSpec.of(GRID))


def test_direct_calls_and_calls_through_the_dispatcher_give_the_same_bits():
    z, g = torch.randn(2, 3, 20, requires_grad=True), torch.randn(2, 24)
    (direct, g_direct), (registered, g_registered) = (
        (phi.detach(), torch.autograd.grad(phi, z, g)[0])
        for phi in (call(z, *ARGUMENTS) for call in (statistics_op, statistics_op.registered))
    )
    assert torch.equal(direct, registered)
    assert torch.equal(g_direct, g_registered)


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def test_a_dispatch_mode_sees_one_operator():
    z = torch.rand(1, 2, 20, requires_grad=True)
    with Recorder() as recorder:
        Statistics(3)(z, GRID).sum().backward()
    assert "tigranet.statistics.default" in recorder.names
    assert "tigranet.statistics_backward.default" in recorder.names


def test_tensors_without_data_give_results_without_data():
    with FakeTensorMode():
        assert statistics_op(torch.rand(2, 3, 20), *ARGUMENTS).shape == (2, 24)


def test_an_operator_without_a_gradient_says_so():
    op = CustomOp("test_no_gradient", "Tensor x", "Tensor", torch.clone, grid=False)
    op.implementation("cpu")(torch.clone)
    op.shapes(torch.empty_like)
    assert torch.equal(op(torch.ones(2)), torch.ones(2))
    with pytest.raises(RuntimeError, match="test_no_gradient"):
        op(torch.ones(2, requires_grad=True)).sum().backward()


def test_gradients_of_a_reference_have_gradients_themselves():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    g_x, g_number, g_other = reference_gradients(
        lambda x, power, y: x**power * y, (x, 3, torch.ones(2)), (True, False, False), torch.ones(2)
    )
    assert g_number is None
    assert g_other is None
    torch.testing.assert_close(g_x, 3 * x**2)
    torch.testing.assert_close(torch.autograd.grad(g_x.sum(), x)[0], 6 * x)
    assert reference_gradients(torch.add, (x, 1), (False, False), torch.ones(2)) == (None, None)


def test_gradients_in_a_new_thread_are_computed_although_gradients_are_disabled_here():
    x = torch.tensor([2.0, 3.0])
    with torch.no_grad(), torch.inference_mode(False):
        g_x, _ = gradients_in_new_thread(torch.pow, (x, 3), (True, False), torch.ones(2))
    torch.testing.assert_close(g_x, 3 * x**2)
    assert not g_x.requires_grad


COMPILE = """
import torch
from tigranet import GridLaplacian, SpectralConv

names = []
def backend(graph, _):
    names.extend(str(node.target) for node in graph.graph.nodes)
    return graph

conv, grid, y = SpectralConv(1, 2, 2), GridLaplacian(4, 5), torch.rand(1, 1, 20)
compiled = torch.compile(lambda y: conv(y, grid), backend=backend, fullgraph=True)
torch.testing.assert_close(compiled(y), conv(y, grid))
assert any("tigranet.convolution" in name for name in names), names
"""


def test_a_compiler_sees_one_operator(warm_process):
    """In a separate process, where types are not checked at run time."""
    process = warm_process.run(COMPILE)
    assert process.returncode == 0, process.stderr
