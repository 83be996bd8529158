import pytest
import torch
from torch.autograd import gradcheck

from oracles import some_laplacians
from tigranet import GridLaplacian
from tigranet.graphs import Eigenbasis
from tigranet.layers import MixedConv
from tigranet.testing import SQUARE, equivariance_error, on_nodes, torus_shifts

LAPLACIANS = some_laplacians()


# the layer computes what its docstring defines


@pytest.mark.parametrize("laplacian", LAPLACIANS.values(), ids=LAPLACIANS.keys())
@pytest.mark.parametrize(("in_maps", "out_maps"), [(2, 3), (3, 3), (4, 2), (1, 1)])
def test_each_pair_of_maps_has_its_own_filter_in_the_eigenbasis(laplacian, in_maps, out_maps):
    conv, y = MixedConv(in_maps, out_maps, 3).double(), torch.rand(2, in_maps, laplacian.num_nodes, dtype=torch.float64)
    basis = Eigenbasis.of(laplacian)
    z = torch.zeros(2, out_maps, laplacian.num_nodes, dtype=torch.float64)
    for i in range(out_maps):
        for k in range(in_maps):
            for m, alpha in enumerate(conv.alpha[i, k].tolist()):
                t_m = lambda lam, m=m: torch.cos(m * torch.arccos((lam - 1).clamp(-1, 1)))  # noqa: E731
                z[:, i] += alpha * basis.filter(y[:, k], t_m)
    torch.testing.assert_close(conv.filtered(y, laplacian), z, rtol=0, atol=1e-6)


def test_in_training_mode_batch_normalisation_and_relu_follow():
    conv, y, grid = MixedConv(3, 2, 2), torch.rand(5, 3, 20), GridLaplacian(4, 5)
    torch.nn.init.normal_(conv.bias)
    expected = torch.nn.functional.batch_norm(
        conv.filtered(y, grid), None, None, bias=conv.bias.flatten(), training=True, eps=1e-5
    )
    torch.testing.assert_close(conv(y, grid), expected.relu())


def test_the_result_is_restricted_to_omega():
    conv, y, grid = MixedConv(3, 2, 2), torch.rand(5, 3, 20), GridLaplacian(4, 5)
    omega = torch.rand(5, 1, 20) < 0.5
    torch.testing.assert_close(conv(y, grid, omega), conv(y, grid) * omega)


def test_the_scale_of_a_filter_does_not_matter():
    conv, y, grid = MixedConv(3, 2, 2).double(), torch.rand(5, 3, 20, dtype=torch.float64), GridLaplacian(4, 5)
    before = conv(y, grid)
    with torch.no_grad():
        conv.alpha *= 7
    torch.testing.assert_close(conv(y, grid), before, rtol=0, atol=2e-3)


# the layer has the symmetry that its docstring claims


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
@pytest.mark.parametrize(("in_maps", "out_maps"), [(2, 5), (6, 3)])
def test_the_result_rotates_and_shifts_with_the_image_up_to_rounding(dtype, tolerance, in_maps, out_maps):
    conv = MixedConv(in_maps, out_maps, 4).to(dtype)
    y = torch.rand(3, in_maps, 81, dtype=dtype)
    conv(y, GridLaplacian(9, 9))
    conv.eval()
    for boundary in ("free", "torus"):
        laplacian = GridLaplacian(9, 9, boundary=boundary)
        moves = [*SQUARE.values(), *(list(torus_shifts(9, 9))[1::7] if boundary == "torus" else [])]
        for move in moves:
            assert equivariance_error(lambda y, g=laplacian: conv(y, g), y, on_nodes(move, 9, 9)) < tolerance


# the layer has the right gradients


@pytest.mark.parametrize(("in_maps", "out_maps"), [(1, 3), (3, 2)])
def test_gradcheck(in_maps, out_maps):
    conv = MixedConv(in_maps, out_maps, 2).double()
    y = torch.rand(2, in_maps, 12, dtype=torch.float64, requires_grad=True)

    def function(y, alpha, bias):
        return torch.func.functional_call(conv, {"alpha": alpha, "bias": bias}, (y, GridLaplacian(3, 4)))

    assert gradcheck(function, (y, conv.alpha, conv.bias))


def test_every_parameter_has_a_gradient():
    conv = MixedConv(3, 4, 2)
    conv(torch.rand(4, 3, 20), GridLaplacian(4, 5)).square().sum().backward()
    assert (conv.alpha.grad != 0).all()
    assert (conv.bias.grad != 0).all()


# the layer is a well-behaved module


@pytest.mark.parametrize("laplacian", LAPLACIANS.values(), ids=LAPLACIANS.keys())
@pytest.mark.parametrize("batch", [0, 1, 5])
def test_one_layer_runs_on_every_kind_of_graph(laplacian, batch):
    conv, y = MixedConv(2, 3, 4), torch.rand(batch, 2, laplacian.num_nodes)
    for training in (True, False):
        assert conv.train(training)(y, laplacian).shape == (batch, 3, laplacian.num_nodes)


def test_in_evaluation_mode_images_do_not_affect_each_other():
    conv, y, grid = MixedConv(2, 3, 2), torch.rand(4, 2, 20), GridLaplacian(4, 5)
    conv(y, grid)
    conv.eval()
    torch.testing.assert_close(conv(y[:1], grid), conv(y, grid)[:1])


def test_degree_0_only_mixes():
    conv, y = MixedConv(3, 2, 0), torch.rand(1, 3, 20)
    torch.testing.assert_close(conv.filtered(y, GridLaplacian(4, 5)), conv.alpha[..., 0] @ y)


def test_a_nan_is_not_hidden():
    y = torch.rand(1, 1, 20)
    y[0, 0, 3] = torch.nan
    assert MixedConv(1, 2, 2).eval()(y, GridLaplacian(4, 5)).isnan().any()


def test_autocast_keeps_the_maps_in_float32():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = MixedConv(3, 2, 2)(torch.rand(2, 3, 20), GridLaplacian(4, 5))
    assert result.dtype == torch.float32


def test_repr():
    assert "3, 4, degree=2" in repr(MixedConv(3, 4, 2))
