import pytest
import torch

from export.conftest import assert_same_function, portable_grid
from tigranet import GridLaplacian
from tigranet.export.portable_spectral import PortableChebyshevSum, PortableMixedConv, PortableSpectralConv
from tigranet.layers import MixedConv, SpectralConv
from tigranet.polynomials import chebyshev_sum


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_the_spectral_convolution(boundary):
    assert_same_function(SpectralConv(8, 5, 3), PortableSpectralConv, boundary)


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize(("out_maps", "degree"), [(9, 4), (5, 4), (5, 0)], ids=["basis first", "mixtures first", "0"])
def test_the_mixed_convolution(out_maps, degree, boundary):
    assert_same_function(MixedConv(8, out_maps, degree), PortableMixedConv, boundary)


@pytest.mark.parametrize("degree", range(7))
def test_the_signs_of_the_recurrence(degree):
    """Clenshaw's recurrence with signs equals the plain one, for every remainder of the degree modulo 4."""
    maps, weights = torch.rand(2, 3, 5, 6), torch.randn(degree + 1, 4, 3)
    laplacian = GridLaplacian(5, 6, 8, "free", 0.3)
    u = [torch.einsum("oi,bin->bon", weight, maps.flatten(2)) for weight in weights]
    actual = PortableChebyshevSum(list(weights))(maps, portable_grid(maps, "free"))
    torch.testing.assert_close(actual.flatten(2), chebyshev_sum(u, laplacian), rtol=1e-4, atol=1e-4)
