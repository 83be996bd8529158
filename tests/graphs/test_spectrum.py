import pytest
import torch

from oracles import some_laplacians
from tigranet import GridLaplacian
from tigranet.graphs import Eigenbasis

LAPLACIANS = some_laplacians()


@pytest.fixture(params=LAPLACIANS.values(), ids=LAPLACIANS.keys())
def laplacian(request):
    return request.param


@pytest.fixture
def basis(laplacian):
    return Eigenbasis.of(laplacian)


@pytest.fixture
def y(laplacian):
    return torch.rand(2, laplacian.num_nodes, dtype=torch.float64)


def assert_near(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_the_transform_is_orthogonal_and_invertible(basis, y):
    assert_near(basis.inverse_fourier(basis.fourier(y)), y)
    assert_near(basis.fourier(y).norm(dim=-1), y.norm(dim=-1))


def test_the_laplacian_multiplies_each_frequency_by_its_eigenvalue(laplacian, basis, y):
    assert_near(basis.fourier(laplacian(y)), basis.lam * basis.fourier(y))


def test_filtering_multiplies_by_the_filter_matrix(basis, y):
    def h(lam):
        return torch.exp(-3 * lam)

    assert_near(basis.filter(y, h), y @ basis.filter_matrix(h).T)
    assert_near(basis.filter_matrix(lambda lam: lam), basis.chi @ torch.diag(basis.lam) @ basis.chi.T)


def test_convolution_is_commutative_and_multiplies_the_spectra(basis, y):
    a, b = y
    assert_near(basis.convolve(a, b), basis.convolve(b, a))
    assert_near(basis.fourier(basis.convolve(a, b)), basis.fourier(a) * basis.fourier(b))


def test_translation_is_convolution_with_a_delta(laplacian, basis, y):
    delta = torch.zeros(laplacian.num_nodes, dtype=torch.float64)
    delta[3] = 1
    assert_near(basis.translate(y, 3), laplacian.num_nodes**0.5 * basis.convolve(y, delta.expand_as(y)))


def test_on_the_torus_translating_a_kernel_shifts_it():
    """There the translation of the paper is a shift, if the spectrum of the signal depends on the frequency only."""
    basis = Eigenbasis.of(GridLaplacian(5, 5, boundary="torus"))
    delta = torch.zeros(25, dtype=torch.float64)
    delta[0] = 1
    kernel = basis.filter(delta, lambda lam: torch.exp(-lam))
    shifted = torch.roll(kernel.reshape(5, 5), (2, 3), (0, 1)).flatten()
    assert_near(basis.filter_matrix(lambda lam: torch.exp(-lam))[2 * 5 + 3], shifted)
    signal = basis.inverse_fourier(torch.exp(-basis.lam))  # it has the spectrum of the kernel
    assert_near(basis.translate(signal, 2 * 5 + 3) / 5, shifted)


def test_a_large_graph_is_rejected():
    with pytest.raises(ValueError, match=r"4096 nodes.*GridLaplacian\(65, 64.*4160"):
        Eigenbasis.of(GridLaplacian(65, 64))
