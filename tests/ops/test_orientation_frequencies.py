"""Group convolutions by frequencies are those by filters, and every number of the expansion is used once."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tigranet.circular_harmonics import basis_size, circular_harmonics
from tigranet.ops.group_convolution import rotated_filters
from tigranet.ops.orientation_frequencies import (
    COMPONENTS,
    FREQUENCIES,
    ORIENTATIONS,
    SIZES,
    coefficients,
    forward_transform,
    inverse_transform,
    matrix_shapes,
    real_waves,
    terms,
    weight_gradient,
)

ALL_SIZES = pytest.mark.parametrize("size", SIZES)


def random_weight(out_features, in_features, size):
    return torch.randn(out_features, in_features, ORIENTATIONS, basis_size(size), dtype=torch.float64)


def matrices_of(numbers, shapes):
    """Split one row of numbers into matrices."""
    parts = numbers.split([rows * columns for rows, columns in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def responses_of(x, size):
    """Convolve the components of features with the filters of orientation 0: (batch, component, feature, wave, ...)."""
    transform = torch.from_numpy(forward_transform())
    components = torch.einsum("cj,bjahw->bcahw", transform, x.unflatten(1, (ORIENTATIONS, -1)))
    waves = torch.from_numpy(circular_harmonics(size, ORIENTATIONS)[0])[:, None]
    responses = F.conv2d(components.flatten(0, 2)[:, None], waves)
    return responses.unflatten(0, components.shape[:3])


def term_values(responses, term):
    value = responses[:, term.component, :, term.wave]
    return value + term.factor * responses[:, term.other_component, :, term.other_wave] if term.factor else value


def convolution_by_frequencies(x, weight, size):
    out_features, in_features = weight.shape[:2]
    shapes = [(columns, rows) for rows, columns in matrix_shapes(size, in_features, out_features)]
    responses, results = responses_of(x, size), []
    for matrix, terms_of_frequency in zip(matrices_of(coefficients(weight, size), shapes), terms(size), strict=True):
        values = torch.stack([term_values(responses, term) for term in terms_of_frequency], dim=2).flatten(1, 2)
        results.append(torch.einsum("rk,bkhw->brhw", matrix, values))
    components = torch.cat(results, dim=1).unflatten(1, (ORIENTATIONS, out_features))
    return torch.einsum("jc,bcohw->bjohw", torch.from_numpy(inverse_transform()), components).flatten(1, 2)


def response_matrix(size):
    """The matrix from all responses (component, wave) to all terms."""
    all_terms = [term for of_frequency in terms(size) for term in of_frequency]
    matrix = np.zeros((len(all_terms), ORIENTATIONS, basis_size(size)))
    for row, term in zip(matrix, all_terms, strict=True):
        row[term.component, term.wave] = 1
        if term.factor:
            row[term.other_component, term.other_wave] = term.factor
    return matrix.reshape(len(all_terms), -1)


@ALL_SIZES
def test_the_convolution_by_frequencies_is_the_one_by_rotated_filters(size):
    x, weight = torch.randn(2, 8 * 3, 7, 9, dtype=torch.float64), random_weight(5, 3, size)
    filters = rotated_filters(weight, torch.from_numpy(circular_harmonics(size, ORIENTATIONS)).flatten(2))
    torch.testing.assert_close(convolution_by_frequencies(x, weight, size), F.conv2d(x, filters), rtol=0, atol=1e-12)


def test_the_transforms_are_inverses_of_each_other():
    np.testing.assert_allclose(forward_transform() @ inverse_transform(), np.eye(ORIENTATIONS), atol=1e-15)


def test_the_components_are_the_parts_of_the_fourier_coefficients():
    signal = np.random.default_rng(0).standard_normal(ORIENTATIONS)
    spectrum = np.fft.rfft(signal)
    expected = [spectrum[m].imag if imaginary else spectrum[m].real for m, imaginary in COMPONENTS]
    np.testing.assert_allclose(forward_transform() @ signal, expected, atol=1e-14)


def test_the_frequencies_are_in_the_order_of_the_components():
    assert list(dict.fromkeys(m for m, _ in COMPONENTS)) == list(FREQUENCIES)


@ALL_SIZES
def test_real_waves_are_the_filters_that_a_rotation_mixes_by_their_frequency(size):
    basis, angle = circular_harmonics(size, ORIENTATIONS), 2 * np.pi / ORIENTATIONS
    places = []
    for place, frequency in real_waves(size):
        places += [place] if frequency == 0 else [place, place + 1]
        if frequency == 0:
            np.testing.assert_allclose(basis[1, place], basis[0, place], atol=1e-15)
            continue
        cosine, sine = basis[0, place], basis[0, place + 1]
        expected = np.cos(frequency * angle) * cosine + np.sin(frequency * angle) * sine
        np.testing.assert_allclose(basis[1, place], expected, atol=1e-14)
    assert places == list(range(basis_size(size)))


@ALL_SIZES
def test_the_terms_are_as_many_as_the_responses_and_determine_them(size):
    matrix = response_matrix(size)
    assert matrix.shape == (8 * basis_size(size),) * 2
    products = matrix @ matrix.T
    np.testing.assert_array_equal(products, np.diag(np.diag(products)))
    assert set(np.diag(products)) <= {1, 2}


@ALL_SIZES
def test_each_response_is_part_of_one_or_two_terms(size):
    uses = np.abs(response_matrix(size)).sum(0)
    assert set(uses) <= {1, 2}


@ALL_SIZES
def test_the_weights_of_a_layer_determine_the_coefficients_and_conversely(size):
    weights = torch.eye(8 * basis_size(size), dtype=torch.float64).unflatten(1, (8, -1))
    columns = torch.stack([coefficients(weight[None, None], size) for weight in weights])
    assert torch.linalg.matrix_rank(columns) == len(weights)


@ALL_SIZES
@pytest.mark.parametrize(("out_features", "in_features"), [(1, 1), (3, 2), (2, 5)])
def test_transposed_coefficients_are_the_transposed_matrices(size, out_features, in_features):
    weight, shapes = random_weight(out_features, in_features, size), matrix_shapes(size, in_features, out_features)
    transposed = matrices_of(coefficients(weight, size, transposed=True), shapes)
    matrices = matrices_of(coefficients(weight, size), [(columns, rows) for rows, columns in shapes])
    for matrix, other in zip(matrices, transposed, strict=True):
        assert torch.equal(matrix, other.t())


@ALL_SIZES
@pytest.mark.parametrize(("out_features", "in_features"), [(1, 1), (3, 2), (2, 5)])
def test_the_gradient_by_the_weights_is_the_transpose_of_the_coefficients(size, out_features, in_features):
    weight, shapes = random_weight(out_features, in_features, size), matrix_shapes(size, in_features, out_features)
    numbers = coefficients(weight, size, transposed=True)
    g = torch.randn_like(numbers)
    gradient = weight_gradient(matrices_of(g, shapes), size, in_features)
    assert gradient.shape == weight.shape
    torch.testing.assert_close((numbers * g).sum(), (weight * gradient).sum(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("size", "least_saving"), [(1, 4), (3, 6), (5, 8)])
def test_the_multiplications_are_a_sixth_of_those_by_filters_of_3_pixels_and_an_eighth_for_5(size, least_saving):
    numbers = sum(rows * columns for rows, columns in matrix_shapes(size, 4, 6))
    by_filters = (8 * 4) * (8 * 6) * size**2
    assert least_saving * numbers <= by_filters < (least_saving + 1) * numbers


@ALL_SIZES
def test_single_precision_rounds_the_coefficients_once_more_only(size):
    weight = random_weight(3, 4, size)
    exact, rounded = coefficients(weight, size), coefficients(weight.float(), size)
    assert rounded.dtype == torch.float32
    assert (rounded - exact).abs().max() <= 1e-6 * exact.abs().max()
