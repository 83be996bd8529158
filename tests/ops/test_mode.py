import threading
from contextvars import copy_context

import pytest

from tigranet.ops.mode import kernel_mode, using


def test_the_default_is_auto(monkeypatch):
    monkeypatch.delenv("TIGRANET_KERNELS", raising=False)
    assert kernel_mode() == "auto"
    monkeypatch.setenv("TIGRANET_KERNELS", "")
    assert kernel_mode() == "auto"


def test_using_takes_precedence_over_the_environment_and_ends_with_the_block(monkeypatch):
    monkeypatch.setenv("TIGRANET_KERNELS", "plain")
    with using("fused"):
        assert kernel_mode() == "fused"
        with using("auto"):
            assert kernel_mode() == "auto"
        assert kernel_mode() == "fused"
    assert kernel_mode() == "plain"


def test_using_ends_with_an_error(monkeypatch):
    monkeypatch.delenv("TIGRANET_KERNELS", raising=False)
    with pytest.raises(KeyError), using("plain"):
        raise KeyError
    assert kernel_mode() == "auto"


def test_a_new_thread_does_not_inherit_the_mode(monkeypatch):
    monkeypatch.delenv("TIGRANET_KERNELS", raising=False)
    modes = []
    with using("plain"):
        thread = threading.Thread(target=lambda: modes.append(kernel_mode()))
        thread.start()
        thread.join()
        assert kernel_mode() == "plain"
    assert modes == ["auto"]


def test_threads_may_use_different_modes_at_the_same_time(monkeypatch):
    monkeypatch.delenv("TIGRANET_KERNELS", raising=False)
    barrier, modes = threading.Barrier(2), {}

    def run(mode):
        with using(mode):
            barrier.wait()
            modes[mode] = kernel_mode()
            barrier.wait()

    threads = [threading.Thread(target=run, args=(mode,)) for mode in ("plain", "fused")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert modes == {"plain": "plain", "fused": "fused"}
    assert copy_context().run(kernel_mode) == "auto"


def test_unknown_modes_are_errors(monkeypatch, without_shape_checks):
    monkeypatch.setenv("TIGRANET_KERNELS", "fast")
    with pytest.raises(ValueError, match=r"TIGRANET_KERNELS.*plain, fused or auto, got 'fast'"):
        kernel_mode()


COMPILE = """
import warnings
import torch
from tigranet import TIGraNet
from tigranet.ops import using

warnings.simplefilter("ignore")
operators = []

def backend(graph, _):
    operators.extend(str(node.target) for node in graph.graph.nodes if "tigranet" in str(node.target))
    return graph

net = TIGraNet("MC[2,1]-OP[1]-SC[2,1]-DP[9]-S[1]", 2).eval()
images = torch.rand(1, 1, 6, 5)
with torch.no_grad():
    expected = net(images)
    for mode in ("plain", "fused"):
        operators.clear()
        torch._dynamo.reset()
        with using(mode):
            actual = torch.compile(net, backend=backend, fullgraph=True)(images)
        torch.testing.assert_close(actual, expected)
        print(mode, len(operators) > 0)
"""


def test_a_network_compiles_as_one_graph_inside_using(warm_process):
    """In a separate process, where types are not checked at run time."""
    process = warm_process.run(COMPILE)
    assert process.stdout == "plain False\nfused True\n", process.stderr
