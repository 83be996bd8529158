"""Features normalised by known moments: the fused version agrees with the reference, and has a gradient."""

from importlib import import_module

import pytest
import torch
from torch.autograd import gradcheck

from tigranet.ops import orientation_norm_eval, using
from tigranet.ops.grid_spec import GridSpec

EPS = 1e-5
module = import_module("tigranet.ops.orientation_norm_eval")


def make_inputs(batch, orientations, features, nodes, dtype=torch.float32):
    y = 3 * torch.randn(batch, nodes, orientations * features, dtype=dtype).transpose(1, 2) + 1
    mean, variance = torch.randn(features, dtype=dtype), 10 * torch.rand(features, dtype=dtype)
    return y, mean, variance, torch.randn(features, dtype=dtype), torch.randn(features, dtype=dtype)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("batch", "orientations", "features", "height", "width", "border", "torus"),
    [
        (1, 4, 1, 1, 1, 0, False),
        (2, 4, 3, 5, 2, 1, True),
        (3, 8, 2, 6, 3, 2, True),
        (0, 4, 2, 3, 2, 1, False),
    ],
)
def test_it_agrees_with_the_reference(batch, orientations, features, height, width, border, torus, dtype, gradients):
    y, *moments, scale, bias = make_inputs(batch, orientations, features, height * width, dtype)
    inputs = (y.requires_grad_(), *moments, scale, bias)
    with torch.set_grad_enabled(gradients):
        for maps in (y, y.contiguous(), y.flip(2)):
            with using("plain"):
                expected = orientation_norm_eval(maps, *inputs[1:], EPS, border, GridSpec(height, width, 8, torus, 1.0))
            with using("fused"):
                actual = orientation_norm_eval(maps, *inputs[1:], EPS, border, GridSpec(height, width, 8, torus, 1.0))
            rtol = 1e-4 if dtype == torch.float32 else 1e-11
            torch.testing.assert_close(actual, expected, rtol=rtol, atol=rtol)


def test_a_nan_stays_a_nan():
    y, *rest = make_inputs(1, 4, 2, 6)
    y[0, 3, 4] = torch.nan
    with using("fused"):
        z = orientation_norm_eval(y, *rest, EPS, 0, GridSpec(2, 3, 8, False, 1.0))
    assert torch.equal(z.flatten(2).isnan(), y.isnan())


def test_gradients():
    y, mean, variance, scale, bias = make_inputs(1, 4, 2, 6, torch.float64)

    def function(y, scale, bias):
        return orientation_norm_eval(y, mean, variance, scale, bias, EPS, 1, GridSpec(2, 3, 8, True, 1.0))

    with using("fused"):
        assert gradcheck(function, [x.requires_grad_() for x in (y, scale, bias)])


def test_the_kernel_runs_where_it_is_faster(monkeypatch):
    calls, inputs = [], make_inputs(1, 4, 2, 6)
    monkeypatch.setattr(module, "forward", lambda *args: calls.append(args) or args[0])
    for needs_gradient in (False, True):
        inputs[3].requires_grad_(needs_gradient)
        with using("auto"):
            orientation_norm_eval(*inputs, EPS, 0, GridSpec(2, 3, 8, False, 1.0))
    assert len(calls) == 1


def test_the_operator_passes_the_checks_of_pytorch():
    y, mean, variance, scale, bias = make_inputs(2, 4, 2, 20)
    args = y.requires_grad_(), mean, variance, scale.requires_grad_(), bias.requires_grad_(), EPS, 1, 4, 5, 8, True, 1.0
    torch.library.opcheck(torch.ops.tigranet.orientation_norm_eval.default, args)
