import pytest
import torch
from torch.autograd import gradcheck

from oracles import grid_adjacency, normalized_laplacian, some_laplacians
from tigranet import GridLaplacian, Statistics
from tigranet.testing import SQUARE, invariance_error, on_nodes, torus_shifts

LAPLACIANS = some_laplacians()


def chebyshev_matrices(laplacian, order):
    """T_k of a dense matrix by its eigenbasis: cos(k arccos)."""
    lam, chi = torch.linalg.eigh(laplacian.to_dense())
    angle = torch.arccos((lam - 1).clamp(-1, 1))
    return [(chi * torch.cos(k * angle)) @ chi.T for k in range(order + 1)]


# the layer computes what the paper defines


@pytest.mark.parametrize("laplacian", LAPLACIANS.values(), ids=LAPLACIANS.keys())
def test_the_statistics_are_mean_and_variance_of_the_magnitudes_in_the_eigenbasis(laplacian):
    z = torch.randn(2, 3, laplacian.num_nodes, dtype=torch.float64)
    active = torch.rand(2, 3, laplacian.num_nodes) < 0.5
    phi = Statistics(5)(z, laplacian, active).reshape(2, 3, 6, 2)
    for k, t_k in enumerate(chebyshev_matrices(laplacian, 5)):
        magnitude = ((z * active) @ t_k).abs()
        torch.testing.assert_close(phi[:, :, k, 0], magnitude.mean(-1), rtol=0, atol=1e-10)
        torch.testing.assert_close(
            phi[:, :, k, 1], (magnitude**2).mean(-1) - magnitude.mean(-1) ** 2, rtol=0, atol=1e-10
        )


def test_the_statistics_are_ordered_by_map_order_and_moment():
    laplacian, z = GridLaplacian(4, 5), torch.randn(2, 3, 20, dtype=torch.float64)
    phi = Statistics(4)(z, laplacian)
    assert phi.shape == (2, 3 * 2 * 5)
    torch.testing.assert_close(phi[:, 10:20], Statistics(4)(z[:, 1:2], laplacian))
    torch.testing.assert_close(phi[:, 0], z[:, 0].abs().mean(-1))
    torch.testing.assert_close(phi[:, 1], z[:, 0].abs().var(-1, correction=0))


def test_autograd_is_the_closed_form():
    """1/N sign(t) for the mean (Eq. der_stat1), 2/N (|t| - mu) sign(t) for the variance (reading 7),
    multiplied by the transposed Chebyshev matrices."""
    laplacian = GridLaplacian(4, 5)
    z = torch.randn(1, 1, 20, dtype=torch.float64, requires_grad=True)
    g = torch.rand(5, 2, dtype=torch.float64)  # dE/dmu_k, dE/dsigma2_k
    Statistics(4)(z, laplacian).backward(g.reshape(1, 10))
    expected = torch.zeros(20, dtype=torch.float64)
    for k, t_k in enumerate(chebyshev_matrices(laplacian, 4)):
        t = t_k @ z.detach()[0, 0]
        magnitude = t.abs()
        d_t = (g[k, 0] + 2 * (magnitude - magnitude.mean()) * g[k, 1]) * t.sign() / 20
        expected += t_k.T @ d_t
    torch.testing.assert_close(z.grad[0, 0], expected, rtol=0, atol=1e-10)


def test_the_papers_variance_derivative_is_the_diagonal_term():
    """Reading 7: 2 (N-1) / N^2 is d sigma^2 / d|t_n| through |t_n| - mu at n alone; the other nodes add the rest."""
    n = 10
    t = torch.rand(n, dtype=torch.float64)
    diagonal = 2 * (n - 1) / n**2 * (t - t.mean())
    others = torch.stack([sum(-2 / n**2 * (t[m] - t.mean()) for m in range(n) if m != j) for j in range(n)])
    torch.testing.assert_close(diagonal + others, 2 / n * (t - t.mean()))


def test_values_that_are_zero_up_to_rounding_have_no_gradient():
    """Reading 8: for a symmetric signal some t are zero in exact arithmetic, and their sign is noise."""
    laplacian = GridLaplacian(1, 9, neighbours=4)
    z = torch.zeros(1, 1, 9, dtype=torch.float64)
    z[0, 0, 3], z[0, 0, 5] = 1.0, -1.0  # odd about node 4, where every t_k is 0
    noisy = z + 1e-16 * torch.randn_like(z)
    gradients = []
    for signal in (z, noisy):
        signal = signal.clone().requires_grad_()
        Statistics(6)(signal, laplacian).sum().backward()
        gradients.append(signal.grad)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0, atol=1e-13)
    at_zero = torch.zeros(1, 1, 9, requires_grad=True)
    Statistics(3)(at_zero, laplacian).sum().backward()
    assert (at_zero.grad == 0).all()


# the layer has the symmetry that its docstring claims


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_the_statistics_do_not_change_when_the_image_is_rotated(boundary):
    laplacian = GridLaplacian(9, 9, boundary=boundary)
    z = torch.randn(2, 3, 81, dtype=torch.float64)
    for transform in SQUARE.values():
        assert invariance_error(lambda z: Statistics(8)(z, laplacian), z, on_nodes(transform, 9, 9)) < 1e-14


def test_the_statistics_do_not_change_when_the_image_is_shifted_on_the_torus():
    laplacian = GridLaplacian(5, 6, boundary="torus")
    z = torch.randn(2, 3, 30, dtype=torch.float64)
    for shift in torus_shifts(5, 6):
        assert invariance_error(lambda z: Statistics(8)(z, laplacian), z, on_nodes(shift, 5, 6)) < 1e-14


# the layer has the right gradients


@pytest.mark.parametrize("laplacian", [LAPLACIANS["torus"], LAPLACIANS["mask"]], ids=["torus", "mask"])
def test_gradcheck(laplacian):
    z = torch.randn(2, 2, laplacian.num_nodes, dtype=torch.float64, requires_grad=True)
    active = torch.rand(2, 2, laplacian.num_nodes) < 0.7
    assert gradcheck(lambda z: Statistics(3)(z, laplacian, active), z)


# the layer is a well-behaved module


@pytest.mark.parametrize("order", [0, 1, 12])
def test_orders(order):
    assert Statistics(order)(torch.rand(1, 2, 20), GridLaplacian(4, 5)).shape == (1, 4 * (order + 1))


def test_a_nan_is_not_hidden():
    z = torch.rand(1, 1, 20)
    z[0, 0, 3] = torch.nan
    active = torch.zeros(1, 1, 20, dtype=torch.bool)
    assert Statistics(2)(z, GridLaplacian(4, 5), active).isnan().all()


def test_float32_is_close_to_float64():
    laplacian, z = GridLaplacian(28, 28), torch.randn(2, 3, 784, dtype=torch.float64)
    torch.testing.assert_close(
        Statistics(12)(z.float(), laplacian).double(), Statistics(12)(z, laplacian), rtol=1e-5, atol=1e-7
    )


def test_repr_and_errors():
    assert repr(Statistics(12)) == "Statistics(12)"
    with pytest.raises(ValueError, match=r"order.*got -1"):
        Statistics(-1)


def test_the_dense_oracle_agrees_with_scipy():
    dense = normalized_laplacian(grid_adjacency(4, 5, 8, "free"))
    second = chebyshev_matrices(GridLaplacian(4, 5), 2)[2]
    shifted = dense - torch.eye(20, dtype=torch.float64)
    torch.testing.assert_close(second, 2 * shifted @ shifted - torch.eye(20, dtype=torch.float64), rtol=0, atol=1e-13)
