import pytest
import torch

from oracles import some_laplacians
from tigranet.graphs import Eigenbasis
from tigranet.polynomials import chebyshev, chebyshev_sum, powers

LAPLACIANS = some_laplacians()


@pytest.fixture(params=LAPLACIANS.values(), ids=LAPLACIANS.keys())
def laplacian(request):
    return request.param


def test_powers_are_filters_by_powers_of_the_eigenvalues(laplacian):
    basis = Eigenbasis.of(laplacian)
    y = torch.rand(2, laplacian.num_nodes, dtype=torch.float64)
    for m, power in enumerate(powers(y, laplacian, 6)):
        torch.testing.assert_close(power, basis.filter(y, lambda lam, m=m: lam**m), rtol=0, atol=1e-12)
    assert m == 6


def test_chebyshev_polynomials_are_cos_k_arccos_on_the_spectrum(laplacian):
    basis = Eigenbasis.of(laplacian)
    y = torch.rand(2, laplacian.num_nodes, dtype=torch.float64)
    for k, t in enumerate(chebyshev(y, laplacian, 12)):
        expected = basis.filter(y, lambda lam, k=k: torch.cos(k * torch.arccos((lam - 1).clamp(-1, 1))))
        torch.testing.assert_close(t, expected, rtol=0, atol=1e-10)
    assert k == 12


@pytest.mark.parametrize("order", [0, 1, 2])
def test_recurrences_yield_one_signal_per_order(order):
    laplacian = LAPLACIANS["line"]
    y = torch.rand(7)
    assert len(list(chebyshev(y, laplacian, order))) == order + 1
    assert len(list(powers(y, laplacian, order))) == order + 1


@pytest.mark.parametrize("order", [0, 1, 2, 3, 7])
def test_the_clenshaw_recurrence_gives_the_sum(laplacian, order):
    u = torch.randn(order + 1, 2, laplacian.num_nodes, dtype=torch.float64)
    expected = sum(list(chebyshev(u_m, laplacian, m))[m] for m, u_m in enumerate(u))
    torch.testing.assert_close(chebyshev_sum(list(u), laplacian), expected, rtol=0, atol=1e-12)
