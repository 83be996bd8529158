"""The largest value of all orientations: the kernels agree with PyTorch, forward and backward."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tigranet.ops import orientation_max, using
from tigranet.ops.cpu import orientation_max as kernels
from tigranet.ops.fallback import KernelUnavailableError, SlowKernelsWarning

DTYPES = [torch.float32, torch.float64]
SHAPES = [(1, 4, 1, 1), (3, 8, 5, 20), (2, 8, 128, 49), (5, 12, 3, 700)]  # batch, orientations, features, nodes


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    """List the kernels that run."""
    names = []
    for name in ("largest", "gradient"):
        function = getattr(kernels, name)
        monkeypatch.setattr(
            kernels, name, lambda *args, name=name, function=function: (names.append(name), function(*args))[1]
        )
    return names


def run(mode, y, orientations, g):
    y = y.detach().requires_grad_()
    with using(mode):
        z = orientation_max(y, orientations)
        return z.detach(), *torch.autograd.grad(z, y, g)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("by_pixel", [True, False])
@pytest.mark.parametrize(("batch", "orientations", "features", "nodes"), SHAPES)
def test_it_is_the_maximum_over_the_orientations(batch, orientations, features, nodes, by_pixel, dtype, calls):
    y = torch.randn(batch, orientations * features, nodes, dtype=dtype)
    y = y.transpose(1, 2).contiguous().transpose(1, 2) if by_pixel else y
    g = torch.randn(batch, features, nodes, dtype=dtype)
    z, g_y = run("fused", y, orientations, g)
    assert torch.equal(z, y.unflatten(1, (orientations, features)).amax(1))
    assert torch.equal(g_y, run("plain", y, orientations, g)[1])
    assert calls == ["largest", "gradient"]


def test_equal_largest_values_share_the_gradient_as_after_a_relu():
    y, g = torch.randn(4, 24, 50).relu() * (torch.rand(4, 1, 50) > 0.3), torch.randn(4, 3, 50)
    for actual, expected in zip(run("fused", y, 8, g), run("plain", y, 8, g), strict=True):
        torch.testing.assert_close(actual, expected)
    _, g_y = run("fused", torch.ones(1, 8, 2), 8, torch.ones(1, 1, 2))
    assert torch.equal(g_y, torch.full((1, 8, 2), 1 / 8))


def test_a_value_that_is_not_a_number_stays_and_changes_no_other_node():
    y = torch.randn(2, 16, 9)
    for place in (0, 5, 15):
        changed = y.clone()
        changed[1, place, 3] = torch.nan
        with using("fused"):
            z, expected = orientation_max(changed, 8), orientation_max(y, 8)
        assert z[1, place % 2, 3].isnan()
        z[1, place % 2, 3] = expected[1, place % 2, 3]
        assert torch.equal(z, expected)


def test_gradients_of_first_and_second_order(calls):
    y = torch.randn(2, 12, 5, dtype=torch.float64, requires_grad=True)
    with using("fused"):
        assert gradcheck(lambda y: orientation_max(y, 4), y)
        assert gradgradcheck(lambda y: orientation_max(y, 4).square(), y)
    assert set(calls) == {"largest", "gradient"}


def test_what_the_kernels_do_not_read_is_computed_by_pytorch(calls):
    for y in (torch.randn(2, 16, 9).bfloat16(), torch.randn(0, 16, 9), torch.randn(2, 16, 0)):
        assert torch.equal(orientation_max(y, 8), orientation_max.reference(y, 8))
    y = torch.randn(3, 2, 16, 9)
    assert torch.equal(torch.vmap(lambda y: orientation_max(y, 8))(y), y.unflatten(2, (8, 2)).amax(2))
    assert calls == []


COMPILE = """
import torch
from tigranet.ops import orientation_max

compiled = torch.compile(lambda y: orientation_max(y, 8), backend="aot_eager", fullgraph=True)
for batch in (4, 5, 9):
    y = torch.randn(batch, 16, 42, requires_grad=True)
    torch.testing.assert_close(compiled(y), orientation_max(y, 8))
    (gradient,) = torch.autograd.grad(compiled(y).square().sum(), y)
    torch.testing.assert_close(gradient, torch.autograd.grad(orientation_max(y, 8).square().sum(), y)[0])
"""


def test_it_compiles_for_several_batch_sizes(warm_process):
    """In a separate process, where types are not checked at run time."""
    process = warm_process.run(COMPILE)
    assert process.returncode == 0, process.stderr


def test_without_compiled_kernels_the_result_is_that_of_pytorch(monkeypatch):
    def fail(*args):
        raise KernelUnavailableError("numba cannot compile it")

    for name in ("largest", "gradient"):
        monkeypatch.setattr(kernels, name, fail)
    y, g = torch.randn(2, 16, 9), torch.randn(2, 2, 9)
    with pytest.warns(SlowKernelsWarning, match="numba cannot compile it"):
        z, g_y = run("auto", y, 8, g)
    assert torch.equal(z, run("plain", y, 8, g)[0])
    assert torch.equal(g_y, run("plain", y, 8, g)[1])
    with using("fused"), pytest.raises(KernelUnavailableError, match="orientation_max"):
        orientation_max(y, 8)
