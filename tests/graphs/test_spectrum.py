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


def close(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_the_transform_is_orthogonal_and_inverts(basis, y):
    close(basis.inverse_fourier(basis.fourier(y)), y)
    close(basis.fourier(y).norm(dim=-1), y.norm(dim=-1))


def test_the_laplacian_multiplies_each_frequency_by_its_eigenvalue(laplacian, basis, y):
    close(basis.fourier(laplacian(y)), basis.lam * basis.fourier(y))


def test_filtering_is_multiplying_by_the_filter_matrix(basis, y):
    def h(lam):
        return torch.exp(-3 * lam)

    close(basis.filter(y, h), y @ basis.filter_matrix(h).T)
    close(basis.filter_matrix(lambda lam: lam), basis.chi @ torch.diag(basis.lam) @ basis.chi.T)


def test_convolution_commutes_and_is_a_product_of_spectra(basis, y):
    a, b = y
    close(basis.convolve(a, b), basis.convolve(b, a))
    close(basis.fourier(basis.convolve(a, b)), basis.fourier(a) * basis.fourier(b))


def test_translation_is_convolution_with_a_delta(laplacian, basis, y):
    delta = torch.zeros(laplacian.num_nodes, dtype=torch.float64)
    delta[3] = 1
    close(basis.translate(y, 3), laplacian.num_nodes**0.5 * basis.convolve(y, delta.expand_as(y)))


def test_on_the_torus_a_translated_kernel_is_a_shifted_one():
    """There, generalized translation is translation: of a signal whose spectrum depends on the frequency alone."""
    basis = Eigenbasis.of(GridLaplacian(5, 5, boundary="torus"))
    delta = torch.zeros(25, dtype=torch.float64)
    delta[0] = 1
    kernel = basis.filter(delta, lambda lam: torch.exp(-lam))
    shifted = torch.roll(kernel.reshape(5, 5), (2, 3), (0, 1)).flatten()
    close(basis.filter_matrix(lambda lam: torch.exp(-lam))[2 * 5 + 3], shifted)
    flat = basis.inverse_fourier(torch.exp(-basis.lam))  # the signal whose spectrum is the kernel's
    close(basis.translate(flat, 2 * 5 + 3) / 5, shifted)


def test_a_large_graph_is_refused():
    with pytest.raises(ValueError, match=r"at most 4096 nodes, GridLaplacian\(65, 64.* has 4160"):
        Eigenbasis.of(GridLaplacian(65, 64))
