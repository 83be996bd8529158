"""Maps standardised by their own moments: the fused version agrees with PyTorch's batch normalisation."""

from copy import deepcopy

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tigranet.layers import Standardise
from tigranet.ops import standardise, using
from tigranet.ops.standardise import transform

EPS, LARGE = 1e-3, 8
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
TRANSFORMS = {
    "none": lambda layer, z, bias, y: layer(z),
    "rectified": lambda layer, z, bias, y: layer.rectified(z, bias),
    "compressed": lambda layer, z, bias, y: layer.compressed(z, LARGE, y),
}


def make_inputs(batch, maps, nodes, dtype=torch.float32, others=2):
    """Return maps with different means and scales, the second almost constant; a bias per map; and other maps."""
    z = torch.randn(batch, maps, nodes, dtype=dtype) * torch.rand(maps, 1, dtype=dtype) * 5 + 10
    z[:, 1:2] = 7 + 1e-3 * torch.rand(batch, min(maps - 1, 1), nodes, dtype=dtype)
    return z, torch.randn(maps, 1, dtype=dtype), torch.randn(batch, others, nodes, dtype=dtype)


def run(mode, name, layer, z, bias, y, g):
    """Return the result, its gradients, and the layer with its new estimates."""
    layer, inputs = deepcopy(layer), [x.detach().requires_grad_() for x in (z, bias, y)]
    with using(mode):
        result = TRANSFORMS[name](layer, *inputs)
        gradients = torch.autograd.grad(result, inputs, g, allow_unused=True)
    return result.detach(), [gradient for gradient in gradients if gradient is not None], layer


def assert_agree(name, z, bias, y, g):
    layer = Standardise(z.shape[1], eps=EPS).to(z.dtype)
    actual, g_actual, fused_layer = run("fused", name, layer, z, bias, y, g)
    expected, g_expected, plain_layer = run("plain", name, layer, z, bias, y, g)
    rtol = TOLERANCE[z.dtype]
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=rtol)
    torch.testing.assert_close(fused_layer.mean, plain_layer.mean, rtol=rtol, atol=0)
    torch.testing.assert_close(fused_layer.variance, plain_layer.variance, rtol=rtol, atol=0)
    for gradients in (g_actual, g_expected):
        gradients[0] *= (plain_layer.variance[:, None] + EPS).sqrt()  # by the standardised map: of the size of g
    for fused, plain in zip(g_actual, g_expected, strict=True):
        differs = (fused - plain).abs() > rtol * (plain.abs() + g.abs().max())
        assert differs.float().mean() <= 1e-4  # at the kink of ReLU, rounding decides


def shape_of(name, z, y):
    return (len(z), z.shape[1] + (y.shape[1] if name == "compressed" else 0), z.shape[2])


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 1, 2), (1, 3, 35), (7, 3, 21), (50, 16, 784), (2, 2, 9000)])
def test_results_gradients_and_estimates_agree_with_the_reference(shape, dtype, name):
    torch.manual_seed(0)
    z, bias, y = make_inputs(*shape, dtype)
    assert_agree(name, z, bias, y, torch.randn(shape_of(name, z, y), dtype=dtype))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_maps_and_gradients_in_other_memory_layouts(name):
    torch.manual_seed(0)
    z, bias, y = make_inputs(3, 5, 24)
    batch, maps, nodes = shape_of(name, z, y)
    gradients = [
        torch.randn(batch, maps + 3, nodes)[:, 2:-1],  # some maps of a larger tensor
        torch.randn(2 * batch, maps, nodes)[::2],
        torch.randn(batch, nodes, maps).transpose(1, 2),
        torch.randn(1, maps, nodes).expand(batch, -1, -1),
        torch.randn(batch, maps, 1).expand(-1, -1, nodes),
        torch.randn(batch, maps, nodes + 1)[..., 1:],
        torch.randn(()).expand(batch, maps, nodes),
    ]
    for g in gradients:
        transposed = z.transpose(1, 2).contiguous().transpose(1, 2)
        assert_agree(name, transposed, bias, y[:, 1:], g[:, : maps - (name == "compressed")])
        assert_agree(name, torch.cat((z, z), dim=1)[:, 2:7], torch.cat((bias, bias), dim=1)[:, :1], y, g)


def test_the_gradient_of_one_image_may_have_any_stride():
    torch.manual_seed(0)
    z, bias, y = make_inputs(1, 3, 10)
    for name in ("rectified", "compressed"):
        batch, maps, nodes = shape_of(name, z, y)
        assert_agree(name, z, bias, y, torch.randn(1000)[7:].as_strided((batch, maps, nodes), (3, nodes, 1)))


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_nan_or_infinity_affects_only_its_map_as_in_the_reference(value, name):
    z, bias, y = make_inputs(2, 3, 20)
    z[1, 2, 5] = value
    g, layer = torch.ones(shape_of(name, z, y)), Standardise(3, eps=EPS)
    (actual, g_actual, fused_layer), (expected, g_expected, plain_layer) = (
        run(mode, name, layer, z, bias, y, g) for mode in ("fused", "plain")
    )
    assert torch.equal(actual.isnan(), expected.isnan())
    assert actual.isnan()[:, -1].all()
    assert not actual.isnan()[:, :-1].any()
    assert torch.equal(g_actual[0].isnan(), g_expected[0].isnan())
    assert torch.equal(fused_layer.mean.isnan(), plain_layer.mean.isnan())
    assert torch.equal(fused_layer.variance.isnan(), plain_layer.variance.isnan())


def test_a_map_far_from_zero_keeps_its_variance():
    z = 1e4 + torch.randn(20, 1, 900)
    with using("fused"):
        _, mean, variance = standardise(z, None, None, EPS, 0)
    torch.testing.assert_close(mean, z.double().mean((0, 2)).float())
    torch.testing.assert_close(variance, z.double().var((0, 2), correction=0).float())


def test_the_reference_returns_the_moments_with_one_over_n():
    z = torch.randn(4, 3, 10, dtype=torch.float64)
    out, mean, variance = standardise.reference(z, None, None, EPS, 0)
    torch.testing.assert_close(mean, z.mean((0, 2)))
    torch.testing.assert_close(variance, z.var((0, 2), correction=0))
    torch.testing.assert_close(out, (z - mean[:, None]) / (variance[:, None] + EPS).sqrt())


def test_what_follows_the_standardisation():
    x, bias, y = torch.tensor([[[-3.0, 0.5, 24.0]]]), torch.tensor([[1.0]]), torch.tensor([[[7.0, 8.0, 9.0]]])
    assert torch.equal(transform(x, None, None, 0), x)
    assert transform(x, bias, None, 0).tolist() == [[[0.0, 1.5, 25.0]]]
    assert transform(x, None, y, LARGE)[:, :1].equal(y)
    torch.testing.assert_close(transform(x, None, y, LARGE)[:, 1:], x / (1 + x.abs() / 8).sqrt())


def test_the_bits_do_not_depend_on_the_number_of_threads():
    (z, bias, y), before, results = make_inputs(20, 6, 2500), torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            layer = Standardise(6, eps=EPS)
            g = torch.linspace(-1, 1, 2500).expand(20, 8, -1)
            results.append(run("fused", "compressed", layer, z, bias, y, g))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1][0], results[1][1][0])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_gradients(name):
    torch.manual_seed(0)
    layer = Standardise(2, eps=EPS).double()
    inputs = [x.requires_grad_() for x in make_inputs(3, 2, 5, torch.float64)]
    inputs[0].data[:, 1] = torch.randn(3, 5)  # a small variance has large gradients
    with using("fused"):
        assert gradcheck(lambda *inputs: TRANSFORMS[name](layer, *inputs), inputs)
        assert gradgradcheck(lambda *inputs: TRANSFORMS[name](layer, *inputs), inputs)
        for index in {"none": [0], "rectified": [0, 1], "compressed": [0, 2]}[name]:  # the other inputs are constant
            constants = [x.detach() for x in inputs]
            constants[index].requires_grad_()
            loss = TRANSFORMS[name](layer, *constants).square().sum()
            (first,) = torch.autograd.grad(loss, constants[index], create_graph=True)
            (second,) = torch.autograd.grad(first.square().sum(), constants[index])
            assert second.abs().sum() > 0


@pytest.mark.parametrize("name", ["rectified", "compressed"])
def test_the_operators_pass_the_checks_of_pytorch(name):
    z, bias, y = (x.requires_grad_() for x in make_inputs(2, 3, 20))
    rest = (bias, None, EPS, 0) if name == "rectified" else (None, y, EPS, LARGE)
    torch.library.opcheck(torch.ops.tigranet.standardise.default, (z, *rest))
    moments = torch.zeros(3), torch.ones(3)
    args = torch.rand(2, 3, 20), z.detach(), *moments, bias.detach() if name == "rectified" else None, EPS, rest[-1]
    torch.library.opcheck(torch.ops.tigranet.standardise_backward.default, args)
