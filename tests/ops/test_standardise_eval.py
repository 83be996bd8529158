"""Maps standardised by known moments in one pass: PyTorch's passes, to rounding; and PyTorch's where gradients are."""

import pytest
import torch

from tigranet.layers import Standardise
from tigranet.ops import settled, using
from tigranet.ops.standardise_eval import settle

EPS, LARGE = 1e-5, 8


def layer(maps, dtype=torch.float32):
    made = Standardise(maps, eps=EPS).to(dtype).eval()
    made.mean.copy_(torch.randn(maps))
    made.variance.copy_(torch.rand(maps) * 10)
    return made


def signals(maps, dtype=torch.float32, batch=2, nodes=35):
    return 10 * torch.randn(batch, maps, nodes, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("batch", "maps", "nodes"), [(1, 1, 1), (2, 3, 35), (3, 40, 784), (0, 2, 5)])
def test_it_is_the_plain_version(batch, maps, nodes, dtype):
    standardise, z, y = layer(maps, dtype), signals(maps, dtype, batch, nodes), signals(2, dtype, batch, nodes)
    bias = torch.randn(maps, 1, dtype=dtype)
    for run in (lambda: standardise.rectified(z, bias), lambda: standardise.rooted(z, LARGE, y)):
        with torch.no_grad(), using("plain"):
            wanted = run()
        with torch.no_grad(), using("fused"):
            came = run()
        torch.testing.assert_close(came, wanted, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=1e-6)


def test_maps_that_lie_otherwise_in_memory():
    standardise, y = layer(3), torch.rand(2, 35, 4).transpose(1, 2)
    z = signals(35, nodes=3).transpose(1, 2)
    with using("plain"):
        wanted = standardise.rooted(z, LARGE, y)
    torch.testing.assert_close(standardise.rooted(z, LARGE, y), wanted)


def test_what_is_no_number_stays_so():
    z = signals(1)
    z[0, 0, 3] = torch.nan
    standardise = layer(1)
    for answer in (standardise.rectified(z, torch.zeros(1, 1)), standardise.rooted(z, LARGE, z)[:, 1:]):
        assert torch.equal(answer.isnan(), z.isnan())


def test_where_something_is_learned_it_is_left_to_pytorch():
    z, bias, moments = signals(3), torch.zeros(3, 1, requires_grad=True), (torch.zeros(3), torch.ones(3))
    assert settled(z, *moments, EPS, bias) is None
    assert settled(z.requires_grad_(), *moments, EPS, None, LARGE, torch.rand(2, 2, 35)) is None
    with torch.no_grad():
        assert settled(z, *moments, EPS, bias) is not None
        assert settled(z, *moments, EPS) is None
        with using("plain"):
            assert settled(z, *moments, EPS, bias) is None


@pytest.mark.parametrize("rooted", [True, False])
def test_it_is_a_well_made_operator(rooted):
    z, y, bias = signals(3), signals(2), torch.rand(3, 1)
    moments = torch.zeros(3), torch.ones(3)
    args = (z, *moments, EPS, None, LARGE, y) if rooted else (z, *moments, EPS, bias, 0, None)
    torch.library.opcheck(settle.seen, args)
