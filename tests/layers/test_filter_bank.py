import numpy as np
import pytest
import torch

from tigranet.layers import filter_bank


def values(alpha, lam):
    return np.stack([np.polynomial.polynomial.polyval(lam, coefficients) for coefficients in alpha.numpy()])


@pytest.mark.parametrize(("filters", "degree"), [(3, 3), (6, 3), (10, 4), (20, 4), (1, 0)])
def test_each_filter_is_the_least_squares_fit_of_its_window(filters, degree):
    """Computed by the normal equations in a different basis."""
    lam = np.linspace(0, 2, 2001)
    basis = np.polynomial.legendre.legvander(lam - 1, degree)
    spacing = 2 / filters
    for i, actual in enumerate(values(filter_bank(filters, degree), lam)):
        centre = spacing * (i + 0.5)
        window = (np.abs(lam - centre) < 0.75 * spacing).astype(float)
        expected = basis @ np.linalg.solve(basis.T @ basis, basis.T @ window)
        np.testing.assert_allclose(actual, expected, atol=1e-9)


def test_the_bank_covers_the_spectrum_evenly():
    """Windows i and K-1-i are mirror images, and so are their fits; together they are large everywhere."""
    lam = np.linspace(0, 2, 201)
    bank = values(filter_bank(6, 4), lam)
    np.testing.assert_allclose(bank[::-1], bank[:, ::-1], atol=1e-9)
    assert np.abs(bank).max(0).min() > 0.2


def test_a_shorter_span_moves_the_windows():
    lam = np.linspace(0, 2, 201)
    np.testing.assert_allclose(
        values(filter_bank(4, 3, span=1.5), 0.75 * lam), values(filter_bank(4, 3), lam), atol=1e-9
    )


def test_there_is_one_coefficient_per_power_from_0_to_the_degree():
    """Reading 4."""
    alpha = filter_bank(10, 4)
    assert alpha.shape == (10, 5)
    assert alpha.dtype == torch.float64
