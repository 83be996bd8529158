"""Maps standardised by known moments: the fused version agrees with the reference, and has a gradient."""

from importlib import import_module

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tigranet.layers import Standardise
from tigranet.ops import standardise_eval, using

EPS, LARGE = 1e-5, 8
module = import_module("tigranet.ops.standardise_eval")


def make_layer(maps, dtype=torch.float32):
    layer = Standardise(maps, eps=EPS).to(dtype).eval()
    layer.mean.copy_(torch.randn(maps))
    layer.variance.copy_(torch.rand(maps) * 10)
    return layer


def signals(maps, dtype=torch.float32, batch=2, nodes=35):
    return 10 * torch.randn(batch, maps, nodes, dtype=dtype)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("batch", "maps", "nodes"), [(1, 1, 1), (2, 3, 35), (3, 40, 784), (0, 2, 5)])
def test_it_agrees_with_the_reference(batch, maps, nodes, dtype, gradients):
    layer, z, y = make_layer(maps, dtype), signals(maps, dtype, batch, nodes), signals(2, dtype, batch, nodes)
    bias = torch.randn(maps, 1, dtype=dtype, requires_grad=True)
    for run in (lambda: layer(z), lambda: layer.rectified(z, bias), lambda: layer.compressed(z, LARGE, y)):
        with torch.set_grad_enabled(gradients):
            with using("plain"):
                expected = run()
            with using("fused"):
                actual = run()
        torch.testing.assert_close(actual, expected, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=1e-6)


def test_maps_in_other_memory_layouts():
    layer, y = make_layer(3), torch.rand(2, 35, 4).transpose(1, 2)
    z = signals(35, nodes=3).transpose(1, 2)
    with using("plain"):
        expected = layer.compressed(z, LARGE, y)
    torch.testing.assert_close(layer.compressed(z, LARGE, y), expected)


def test_a_nan_stays_a_nan():
    z = signals(1)
    z[0, 0, 3] = torch.nan
    layer = make_layer(1)
    with using("fused"):
        for result in (layer.rectified(z, torch.zeros(1, 1)), layer.compressed(z, LARGE, z)[:, 1:]):
            assert torch.equal(result.isnan(), z.isnan())


@pytest.mark.parametrize("transformed", ["not at all", "rectified", "compressed"])
def test_gradients(transformed):
    layer = make_layer(3, torch.float64)
    z, y = signals(3, torch.float64, nodes=4).requires_grad_(), signals(2, torch.float64, nodes=4).requires_grad_()
    bias = torch.randn(3, 1, dtype=torch.float64, requires_grad=True)
    function, inputs = {
        "not at all": (layer, (z,)),
        "rectified": (layer.rectified, (z, bias)),
        "compressed": (lambda z, y: layer.compressed(z, LARGE, y), (z, y)),
    }[transformed]
    with using("fused"):
        assert gradcheck(function, inputs)
        assert gradgradcheck(function, inputs)
        result = function(*(x.detach() for x in inputs[:1]), *inputs[1:])  # maps that need no gradient
        assert len(inputs) == 1 or result.requires_grad


def test_the_kernel_runs_where_it_is_faster(monkeypatch):
    calls = []
    monkeypatch.setattr(module, "forward", lambda *args: calls.append(args) or args[0])
    z, bias, moments = signals(3), torch.zeros(3, 1, requires_grad=True), (torch.zeros(3), torch.ones(3))

    def kernel_runs(*args):
        calls.clear()
        standardise_eval(z, *moments, EPS, *args)
        return bool(calls)

    assert not kernel_runs(bias, 0, None)  # a gradient is needed
    with torch.no_grad():
        assert kernel_runs(bias, 0, None)
        assert kernel_runs(None, LARGE, torch.rand(2, 2, 35))
        assert not kernel_runs(None, 0, None)  # batch normalisation is one pass
        with using("plain"):
            assert not kernel_runs(bias, 0, None)
        with using("fused"):
            assert kernel_runs(None, 0, None)
    with using("fused"):
        assert kernel_runs(bias, 0, None)


@pytest.mark.parametrize("compressed", [True, False])
def test_the_operator_passes_the_checks_of_pytorch(compressed):
    z, y, bias = signals(3).requires_grad_(), signals(2), torch.rand(3, 1)
    moments = torch.zeros(3), torch.ones(3)
    args = (z, *moments, EPS, None, LARGE, y) if compressed else (z, *moments, EPS, bias, 0, None)
    torch.library.opcheck(torch.ops.tigranet.standardise_eval.default, args)
