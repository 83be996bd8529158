"""Maps standardised by their own moments, fused on the CPU: PyTorch's batch normalisation and passes, to rounding."""

from copy import deepcopy

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tigranet.layers import Standardise
from tigranet.ops import standardised, using
from tigranet.ops.cuda_standardise import pack_size
from tigranet.ops.standardise import standardise, standardise_backward

EPS, LARGE = 1e-3, 8
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
WAYS = {
    "alone": lambda layer, z, bias, y: layer(z),
    "rectified": lambda layer, z, bias, y: layer.rectified(z, bias),
    "rooted": lambda layer, z, bias, y: layer.rooted(z, LARGE, y),
}


def leaves(batch, maps, nodes, dtype=torch.float32, others=2):
    """Maps of a mean and a scale each, of which the second is all but constant; a bias each; and other maps."""
    z = torch.randn(batch, maps, nodes, dtype=dtype) * torch.rand(maps, 1, dtype=dtype) * 5 + 10
    z[:, 1:2] = 7 + 1e-3 * torch.rand(batch, min(maps - 1, 1), nodes, dtype=dtype)
    return z, torch.randn(maps, 1, dtype=dtype), torch.randn(batch, others, nodes, dtype=dtype)


def run(mode, way, layer, z, bias, y, g):
    """The answer, its gradients, and the layer that has learned."""
    layer, parts = deepcopy(layer), [part.detach().requires_grad_() for part in (z, bias, y)]
    with using(mode):
        answer = WAYS[way](layer, *parts)
        found = torch.autograd.grad(answer, parts, g, allow_unused=True)
    return answer.detach(), [part for part in found if part is not None], layer


def alike(way, z, bias, y, g):
    layer = Standardise(z.shape[1], eps=EPS).to(z.dtype)
    came, g_came, learned = run("fused", way, layer, z, bias, y, g)
    wanted, g_wanted, other = run("plain", way, layer, z, bias, y, g)
    rtol = TOLERANCE[z.dtype]
    torch.testing.assert_close(came, wanted, rtol=rtol, atol=rtol)
    torch.testing.assert_close(learned.mean, other.mean, rtol=rtol, atol=0)
    torch.testing.assert_close(learned.variance, other.variance, rtol=rtol, atol=0)
    for found in (g_came, g_wanted):
        found[0] *= (other.variance[:, None] + EPS).sqrt()  # by the standardised map: of the size of g
    for mine, theirs in zip(g_came, g_wanted, strict=True):
        far = (mine - theirs).abs() > rtol * (theirs.abs() + g.abs().max())
        assert far.float().mean() <= 1e-4  # where ReLU bends, rounding decides


def shape_of(way, z, y):
    return (len(z), z.shape[1] + (y.shape[1] if way == "rooted" else 0), z.shape[2])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 1, 2), (1, 3, 35), (7, 3, 21), (50, 16, 784), (2, 2, 9000)])
def test_it_is_the_plain_version_gradients_and_estimates_too(shape, dtype, way):
    torch.manual_seed(0)
    z, bias, y = leaves(*shape, dtype)
    alike(way, z, bias, y, torch.randn(shape_of(way, z, y), dtype=dtype))


@pytest.mark.parametrize("way", WAYS)
def test_maps_and_gradients_that_lie_otherwise_in_memory(way):
    torch.manual_seed(0)
    z, bias, y = leaves(3, 5, 24)
    batch, maps, nodes = shape_of(way, z, y)
    gradients = [
        torch.randn(batch, maps + 3, nodes)[:, 2:-1],  # some maps of more
        torch.randn(2 * batch, maps, nodes)[::2],
        torch.randn(batch, nodes, maps).transpose(1, 2),
        torch.randn(1, maps, nodes).expand(batch, -1, -1),
        torch.randn(batch, maps, 1).expand(-1, -1, nodes),
        torch.randn(batch, maps, nodes + 1)[..., 1:],
        torch.randn(()).expand(batch, maps, nodes),
    ]
    for g in gradients:
        alike(way, z.transpose(1, 2).contiguous().transpose(1, 2), bias, y[:, 1:], g[:, : maps - (way == "rooted")])
        alike(way, torch.cat((z, z), dim=1)[:, 2:7], torch.cat((bias, bias), dim=1)[:, :1], y, g)


def test_a_gradient_of_one_image_may_begin_anywhere():
    torch.manual_seed(0)
    z, bias, y = leaves(1, 3, 10)
    for way in ("rectified", "rooted"):
        batch, maps, nodes = shape_of(way, z, y)
        alike(way, z, bias, y, torch.randn(1000)[7:].as_strided((batch, maps, nodes), (3, nodes, 1)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("worst", [torch.nan, torch.inf, -torch.inf])
def test_what_is_no_number_spoils_its_map_alone_as_in_the_plain_version(worst, way):
    z, bias, y = leaves(2, 3, 20)
    z[1, 2, 5] = worst
    g, layer = torch.ones(shape_of(way, z, y)), Standardise(3, eps=EPS)
    (came, g_came, mine), (wanted, g_wanted, other) = (
        run(mode, way, layer, z, bias, y, g) for mode in ("fused", "plain")
    )
    assert torch.equal(came.isnan(), wanted.isnan())
    assert came.isnan()[:, -1].all()
    assert not came.isnan()[:, :-1].any()
    for found, right in ((g_came[0], g_wanted[0]), (mine.mean, other.mean), (mine.variance, other.variance)):
        assert torch.equal(found.isnan(), right.isnan())


def test_a_map_far_from_zero_keeps_its_variance():
    z = 1e4 + torch.randn(20, 1, 900)
    _, mean, variance = standardised(z, EPS)
    torch.testing.assert_close(mean, z.double().mean((0, 2)).float())
    torch.testing.assert_close(variance, z.double().var((0, 2), correction=0).float())


def test_the_bits_do_not_depend_on_the_number_of_threads():
    (z, bias, y), usual, found = leaves(20, 6, 2500), torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            layer = Standardise(6, eps=EPS)
            found.append(run("fused", "rooted", layer, z, bias, y, torch.linspace(-1, 1, 2500).expand(20, 8, -1)))
    finally:
        torch.set_num_threads(usual)
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1][0], found[1][1][0])


@pytest.mark.parametrize("way", WAYS)
def test_gradients(way):
    torch.manual_seed(0)
    layer = Standardise(2, eps=EPS).double()
    parts = [part.requires_grad_() for part in leaves(3, 2, 5, torch.float64)]
    parts[0].data[:, 1] = torch.randn(3, 5)  # a small variance has large gradients
    with using("fused"):
        assert gradcheck(lambda *parts: WAYS[way](layer, *parts), parts)
        assert gradgradcheck(lambda *parts: WAYS[way](layer, *parts), parts)
        for alone in {"alone": [0], "rectified": [0, 1], "rooted": [0, 2]}[way]:  # the others are frozen
            still = [part.detach() for part in parts]
            still[alone].requires_grad_()
            found = WAYS[way](layer, *still).square().sum()
            (first,) = torch.autograd.grad(found, still[alone], create_graph=True)
            (second,) = torch.autograd.grad(first.square().sum(), still[alone])
            assert second.abs().sum() > 0


def test_where_there_is_none_or_a_plain_one_is_asked_for():
    assert standardised(torch.rand(0, 3, 20), EPS) is None
    assert standardised(torch.rand(2, 3, 20).bfloat16(), EPS) is None
    with using("plain"):
        assert standardised(torch.rand(2, 3, 20), EPS) is None


@pytest.mark.parametrize("way", ["rectified", "rooted"])
def test_it_is_a_well_made_operator(way):
    z, bias, y = (part.requires_grad_() for part in leaves(2, 3, 20))
    rest = (bias, None, EPS, 0) if way == "rectified" else (None, y, EPS, LARGE)
    torch.library.opcheck(standardise.seen, (z, *rest))
    moments = torch.zeros(3), torch.ones(3)
    args = torch.rand(2, 3, 20), z.detach(), *moments, bias.detach() if way == "rectified" else None, EPS, rest[-1]
    torch.library.opcheck(standardise_backward.seen, args)


def test_maps_are_read_in_packs_where_they_begin_at_whole_ones():
    z = torch.rand(8 * 676 + 4)
    assert pack_size(z[4:].view(2, 4, 676), z[:-4].view(2, 4, 676)) == 4
    assert pack_size(z[1:-3].view(2, 4, 676)) == pack_size(z[:30].view(2, 3, 5)) == 1
