"""An operator and the way past PyTorch's dispatcher: the same answers and gradients, and whoever looks on sees it."""

import subprocess
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from tigranet import GridLaplacian, Statistics
from tigranet.ops.grid_spec import describe
from tigranet.ops.statistics import statistics

GRID = GridLaplacian(4, 5)
ARGUMENTS = (None, 3, Statistics.ROUNDING, *describe(GRID))


def test_both_ways_come_to_the_same_answer_and_gradient():
    z, g = torch.randn(2, 3, 20, requires_grad=True), torch.randn(2, 24)
    (direct, g_direct), (seen, g_seen) = (
        (phi.detach(), torch.autograd.grad(phi, z, g)[0])
        for phi in (way(z, *ARGUMENTS) for way in (statistics, statistics.seen))
    )
    assert torch.equal(direct, seen)
    assert torch.equal(g_direct, g_seen)


class Listens(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.heard = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.heard.append(str(function))
        return function(*args, **(kwargs or {}))


def test_whoever_looks_on_sees_one_operator():
    z = torch.rand(1, 2, 20, requires_grad=True)
    with Listens() as mode:
        Statistics(3)(z, GRID).sum().backward()
    assert "tigranet.statistics.default" in mode.heard
    assert "tigranet.statistics_backward.default" in mode.heard


def test_tensors_without_numbers_get_an_answer_without_numbers():
    with FakeTensorMode():
        assert statistics(torch.rand(2, 3, 20), *ARGUMENTS).shape == (2, 24)


COMPILED = """
import torch
from tigranet import GridLaplacian, SpectralConv

seen = []
def backend(graph, _):
    seen.extend(str(node.target) for node in graph.graph.nodes)
    return graph

conv, grid, y = SpectralConv(1, 2, 2), GridLaplacian(4, 5), torch.rand(1, 1, 20)
compiled = torch.compile(lambda y: conv(y, grid), backend=backend, fullgraph=True)
torch.testing.assert_close(compiled(y), conv(y, grid))
assert any("tigranet.convolution" in name for name in seen), seen
"""


def test_a_compiler_sees_it_too():
    """In a process of its own, where no types are checked while it runs."""
    finished = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
