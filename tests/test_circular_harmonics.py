import numpy as np
import pytest

from tigranet.circular_harmonics import basis_size, circular_harmonics, ring_frequencies

SIZES = [1, 3, 5, 7, 9, 11]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("orientations", [4, 8, 12])
def test_a_quarter_turn_of_the_filters_is_a_quarter_of_the_orientations(size, orientations):
    basis = circular_harmonics(size, orientations)
    assert basis.shape == (orientations, basis_size(size), size, size)
    for turns in range(1, 5):
        expected = np.roll(basis, -turns * orientations // 4, axis=0)
        np.testing.assert_allclose(np.rot90(basis, turns, axes=(2, 3)), expected, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_the_rotated_filters_are_the_rotation_of_their_span(size):
    """Any rotation is a combination of cosine and sine: the span of the filters is the same in all orientations."""
    upright, *rotated = circular_harmonics(size, 12).reshape(12, basis_size(size), -1)
    for filters in rotated:
        coefficients = np.linalg.lstsq(upright.T, filters.T, rcond=None)[0]
        np.testing.assert_allclose(upright.T @ coefficients, filters.T, atol=1e-10)


@pytest.mark.parametrize("size", [3, 5, 7])
def test_the_filters_are_linearly_independent(size):
    filters = circular_harmonics(size, 8)[0].reshape(basis_size(size), -1)
    assert np.linalg.svd(filters, compute_uv=False)[-1] > 0.1


def test_waves_are_zero_in_the_corners_and_have_no_mean_except_for_frequency_zero():
    basis = circular_harmonics(7, 8)[0]
    assert (basis[:, [0, 0, -1, -1], [0, -1, 0, -1]] == 0).all()
    is_constant = np.array([frequency == 0 for _, frequency in ring_frequencies(7) for _ in range(1 + (frequency > 0))])
    np.testing.assert_allclose(basis[~is_constant].sum((1, 2)), 0, atol=1e-12)
    assert (basis[is_constant].sum((1, 2)) > 0.9).all()


def test_the_wave_of_frequency_one_points_along_its_orientation():
    basis = circular_harmonics(5, 8)
    cosine = basis[:, 2]  # ring 1, frequency 1
    x, y = np.meshgrid(np.arange(-2, 3), np.arange(2, -3, -1))
    direction = np.arctan2((cosine * y).sum((1, 2)), (cosine * x).sum((1, 2)))
    expected = 2 * np.pi * np.arange(8) / 8
    np.testing.assert_allclose(np.exp(1j * direction), np.exp(1j * expected), atol=1e-12)


@pytest.mark.parametrize("size", [0, 2, 4, -1])
def test_an_even_size_is_an_error(size):
    with pytest.raises(ValueError, match=f"odd.*{size}"):
        ring_frequencies(size)
