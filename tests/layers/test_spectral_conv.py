import pytest
import torch
from torch.autograd import gradcheck

from oracles import grid_adjacency, normalized_laplacian, some_laplacians
from tigranet import GridLaplacian, SparseLaplacian, SpectralConv
from tigranet.graphs import Eigenbasis
from tigranet.layers import filter_bank
from tigranet.testing import SQUARE, equivariance_error, on_nodes, torus_shifts

LAPLACIANS = some_laplacians()


def conv_and_input(laplacian, in_maps=3, out_maps=4, degree=3, batch=2):
    conv = SpectralConv(in_maps, out_maps, degree).double()
    y = torch.rand(batch, in_maps, laplacian.num_nodes, dtype=torch.float64)
    omega = torch.rand(batch, 1, laplacian.num_nodes) < 0.6
    return conv, y, omega


# the layer computes what the paper defines


@pytest.mark.parametrize("laplacian", LAPLACIANS.values(), ids=LAPLACIANS.keys())
def test_polynomial_filtering_is_filtering_in_the_eigenbasis(laplacian):
    conv, y, omega = conv_and_input(laplacian)
    basis = Eigenbasis.of(laplacian)
    z = torch.zeros(2, 4, laplacian.num_nodes, dtype=torch.float64)
    for i in range(4):
        for k in range(3):
            z[:, i] += conv.beta[k] * basis.filter(
                y[:, k], lambda lam, i=i: sum(a * lam**m for m, a in enumerate(conv.alpha[i]))
            )
    torch.testing.assert_close(conv(y, laplacian), z, rtol=0, atol=1e-10)
    torch.testing.assert_close(conv(y, laplacian, omega), z * omega, rtol=0, atol=1e-10)


def test_restricting_keeps_columns_and_transposes():
    """Eq. pol_filt_2 with a matrix: F with zero columns outside omega, transposed, applied to y."""
    laplacian = GridLaplacian(4, 5)
    conv, y, omega = conv_and_input(laplacian, batch=1)
    dense = laplacian.to_dense()
    actual = conv(y, laplacian, omega)
    for i in range(4):
        f = sum(a * torch.linalg.matrix_power(dense, m) for m, a in enumerate(conv.alpha[i])) * omega[0]
        expected = sum(conv.beta[k] * f.T @ y[0, k] for k in range(3))
        torch.testing.assert_close(actual[0, i], expected, rtol=0, atol=1e-10)


def test_autograd_is_the_papers_derivatives():
    """Eqs. der1, der2 and der_fm, with the sum over the filters i that der2 and der_fm omit."""
    laplacian = GridLaplacian(4, 5)
    conv, y, omega = conv_and_input(laplacian, batch=1)
    y.requires_grad_()
    g = torch.rand(1, 4, 20, dtype=torch.float64)  # dE/dz
    conv(y, laplacian, omega).backward(g)
    dense = normalized_laplacian(grid_adjacency(4, 5, 8, "free"))
    restricted = [torch.linalg.matrix_power(dense, m) * omega[0] for m in range(4)]  # L^m with the columns in omega
    alpha, beta, signal = conv.alpha.detach(), conv.beta.detach(), y.detach()[0]
    d_alpha = torch.stack(
        [
            torch.stack([sum(beta[k] * (p.T @ signal[k]) @ g[0, i] for k in range(3)) for p in restricted])
            for i in range(4)
        ]
    )
    d_beta = torch.stack(
        [
            sum(alpha[i, m] * (restricted[m].T @ signal[j]) @ g[0, i] for i in range(4) for m in range(4))
            for j in range(3)
        ]
    )
    d_y = torch.stack(
        [beta[j] * sum(alpha[i, m] * restricted[m] @ g[0, i] for i in range(4) for m in range(4)) for j in range(3)]
    )
    torch.testing.assert_close(conv.alpha.grad, d_alpha, rtol=0, atol=1e-10)
    torch.testing.assert_close(conv.beta.grad, d_beta, rtol=0, atol=1e-10)
    torch.testing.assert_close(y.grad[0], d_y, rtol=0, atol=1e-10)


def test_the_initial_parameters_are_those_of_the_paper():
    conv = SpectralConv(1000, 6, 3)
    torch.testing.assert_close(conv.alpha.data.double(), filter_bank(6, 3), rtol=0, atol=1e-5)
    assert conv.beta.min() >= 0
    assert 0.9 < conv.beta.max() <= 1
    assert conv.beta.mean().item() == pytest.approx(0.5, abs=0.05)


def test_a_filter_reaches_as_far_as_its_degree():
    laplacian = GridLaplacian(11, 11)
    delta = torch.zeros(1, 1, 121)
    delta[0, 0, 60] = 1
    result = SpectralConv(1, 1, 3)(delta, laplacian).reshape(11, 11)
    assert (result[2:9, 2:9] != 0).all()
    result[2:9, 2:9] = 0
    assert (result == 0).all()


# the layer has the symmetry that its docstring claims


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_the_result_rotates_with_the_image_bit_for_bit(boundary):
    laplacian, conv = GridLaplacian(9, 9, boundary=boundary), SpectralConv(3, 5, 4)
    y = torch.rand(2, 3, 81)
    for transform in SQUARE.values():
        assert equivariance_error(lambda y: conv(y, laplacian), y, on_nodes(transform, 9, 9)) == 0


def test_the_result_shifts_with_the_image_on_the_torus_bit_for_bit():
    laplacian, conv = GridLaplacian(5, 6, boundary="torus"), SpectralConv(3, 5, 4)
    y = torch.rand(2, 3, 30)
    for shift in torus_shifts(5, 6):
        assert equivariance_error(lambda y: conv(y, laplacian), y, on_nodes(shift, 5, 6)) == 0


def test_the_result_does_not_depend_on_the_order_of_the_nodes():
    a = torch.from_numpy(grid_adjacency(4, 5, 8, "free"))
    permutation = torch.randperm(20)
    conv, y, _ = conv_and_input(GridLaplacian(4, 5))
    actual = conv(y[..., permutation], SparseLaplacian(a[permutation][:, permutation]))
    torch.testing.assert_close(actual, conv(y, SparseLaplacian(a))[..., permutation], rtol=0, atol=1e-12)


# the layer has the right gradients


@pytest.mark.parametrize("laplacian", [LAPLACIANS["free grid"], LAPLACIANS["mask"]], ids=["grid", "mask"])
def test_gradcheck(laplacian):
    conv, y, omega = conv_and_input(laplacian, in_maps=2, out_maps=2, degree=2)
    y.requires_grad_()

    def function(y, alpha, beta):
        return torch.func.functional_call(conv, {"alpha": alpha, "beta": beta}, (y, laplacian, omega))

    assert gradcheck(function, (y, conv.alpha, conv.beta))


def test_every_parameter_has_a_gradient():
    laplacian = GridLaplacian(4, 5)
    conv, y, _ = conv_and_input(laplacian)
    conv(y, laplacian).square().sum().backward()
    assert (conv.alpha.grad != 0).all()
    assert (conv.beta.grad != 0).all()


# the layer is a well-behaved module


@pytest.mark.parametrize("laplacian", LAPLACIANS.values(), ids=LAPLACIANS.keys())
@pytest.mark.parametrize("batch", [1, 5])
def test_one_layer_runs_on_every_kind_of_graph(laplacian, batch):
    conv = SpectralConv(2, 3, 4)
    assert conv(torch.rand(batch, 2, laplacian.num_nodes), laplacian).shape == (batch, 3, laplacian.num_nodes)


def test_degree_0_only_scales():
    conv, y = SpectralConv(1, 2, 0), torch.rand(1, 1, 20)
    torch.testing.assert_close(conv(y, GridLaplacian(4, 5)), conv.alpha * conv.beta * y)


def test_a_nan_is_not_hidden():
    y = torch.rand(1, 1, 20)
    y[0, 0, 3] = torch.nan
    omega = torch.zeros(1, 1, 20, dtype=torch.bool)
    assert SpectralConv(1, 2, 2)(y, GridLaplacian(4, 5), omega).isnan().any()


def test_repr_and_errors(without_shape_checks):
    conv = SpectralConv(3, 4, 2)
    assert repr(conv) == "SpectralConv(3, 4, degree=2)"
    with pytest.raises(ValueError, match=r"\(batch, 3, nodes\), got shape \(1, 2, 20\)"):
        conv(torch.rand(1, 2, 20), GridLaplacian(4, 5))
