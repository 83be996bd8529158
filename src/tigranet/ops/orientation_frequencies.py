r"""Group convolutions by frequencies: of the filters around their centre, and of the features over the orientations.

A filter that leads from orientation i to orientation j has one weight for each wave of the basis
(:mod:`tigranet.circular_harmonics`) and each difference j - i. Let :math:`C_i` be the response of the maps of
orientation i to a wave :math:`\psi_k` of frequency k, a complex number at each pixel. The filters of orientation j are
rotated by :math:`\theta_j = 2 \pi j / N`, which multiplies the response by :math:`e^{-i k \theta_j}`, so that the wave
contributes

.. math:: z_j = \mathrm{Re}\Bigl(e^{-i k \theta_j} \sum_i \omega_{j-i}\, C_i\Bigr),

with :math:`\omega = w_{\cos} - i\, w_{\sin}`. The sum is a convolution over the orientations, and the factor before it
shifts its frequencies by k. For the Fourier coefficients over the orientations this means

.. math::
    \hat z(m) = \tfrac12 \bigl(\hat\omega(m+k)\, \hat C(m+k) + \overline{\hat\omega(k-m)\, \hat C(k-m)}\bigr):

each frequency m of the output depends on two frequencies of the input, where each of the N orientations depends on all
N. For N = 8 and filters of 3x3 pixels, this takes a seventh of the multiplications, and for 5x5 pixels a ninth.

All numbers are stored as real ones. :data:`COMPONENTS` lists the N = 8 real and imaginary parts of the coefficients of
a real signal over the orientations. A *term* of frequency m is one real number per input feature, on which this
frequency of the output depends.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.circular_harmonics import basis_size, ring_frequencies

ORIENTATIONS = 8
"""The number of orientations."""
SIZES = (1, 3, 5)
"""Side lengths of the filters. The waves of larger filters are not exactly rotated by their phase."""
COMPONENTS = ((0, False), (4, False), (1, False), (1, True), (2, False), (2, True), (3, False), (3, True))
"""Frequency over the orientations, and whether the number is the imaginary part, of the numbers that are stored."""
FREQUENCIES = (0, 4, 1, 2, 3)
"""Frequencies of the output, in the order of :data:`COMPONENTS`."""


class Term(NamedTuple):
    """One real number per input feature on which a frequency of the output depends: a + factor * b.

    a and b are the responses of a component of the input to a real filter of the basis.
    """

    wave: int
    """The place of the real filter for a."""
    component: int
    """The component of the input for a."""
    other_wave: int
    """The place of the real filter for b, -1 if there is no b."""
    other_component: int
    """The component of the input for b."""
    factor: int
    """1 or -1, or 0 if there is no b."""


def _component_at(frequency: int, imaginary: bool) -> int:
    """Return the place of a part of a coefficient among :data:`COMPONENTS`."""
    return COMPONENTS.index((frequency, imaginary))


def real_waves(size: int) -> list[tuple[int, int]]:
    """Return the place of the cosine of each wave among the real filters of the basis, and its frequency.

    Args:
        size: Side length of the filters.

    Returns:
        The places and frequencies. The sine of a frequency above 0 follows its cosine.
    """
    places, place = [], 0
    for _, frequency in ring_frequencies(size):
        places.append((place, frequency))
        place += 1 if frequency == 0 else 2
    return places


@cache
def forward_transform() -> Float[np.ndarray, "components orientations"]:
    """Return the matrix from the orientations to the components."""
    angles = 2 * np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS
    return np.stack([(-np.sin(m * angles) if imaginary else np.cos(m * angles)) for m, imaginary in COMPONENTS])


@cache
def inverse_transform() -> Float[np.ndarray, "orientations components"]:
    """Return the matrix from the components to the orientations."""
    return np.linalg.inv(forward_transform())


@cache
def terms(size: int) -> tuple[tuple[Term, ...], ...]:
    """Return the terms of each frequency of the output, in the order of :data:`FREQUENCIES`.

    Args:
        size: Side length of the filters.

    Returns:
        One sequence of terms per frequency. Each response is part of the terms of one or two frequencies.
    """
    return tuple(tuple(term for term, _ in _weighted_terms(size, m)) for m in FREQUENCIES)


@cache
def _weighted_terms(size: int, m: int) -> list[tuple[Term, Float[np.ndarray, "parts orientations basis"]]]:
    """Return the terms of a frequency of the output, and their weights as sums of those of the layer."""
    result = []
    angles = 2 * np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS
    has_imaginary_part = (m, True) in COMPONENTS
    for place, k in real_waves(size):
        if k == 0:
            real, imaginary = np.zeros((2, ORIENTATIONS, basis_size(size)))
            real[:, place], imaginary[:, place] = np.cos(m * angles), -np.sin(m * angles)
            result.append((Term(place, _component_at(m, False), -1, 0, 0), np.stack([real, imaginary])))
            if has_imaginary_part:
                result.append((Term(place, _component_at(m, True), -1, 0, 0), np.stack([-imaginary, real])))
            continue
        for source, conjugate in ((m + k, False), (k - m, True)) if has_imaginary_part else ((m + k, False),):
            real, imaginary = np.zeros((2, ORIENTATIONS, basis_size(size)))
            share = 0.5 if has_imaginary_part else 1.0
            real[:, place], real[:, place + 1] = share * np.cos(source * angles), -share * np.sin(source * angles)
            imaginary[:, place], imaginary[:, place + 1] = real[:, place + 1], -real[:, place]
            sign = -1 if conjugate else 1
            of_real, of_imaginary = _response_terms(place, source)
            result.append((of_real, np.stack([real, sign * imaginary])))
            result.append((of_imaginary, np.stack([-imaginary, sign * real])))
    return [(term, weights if has_imaginary_part else weights[:1]) for term, weights in result]


def _response_terms(cosine: int, source: int) -> tuple[Term, Term]:
    """Return the real and the imaginary part of the coefficient ``source`` of the response to a wave."""
    sine = cosine + 1
    signed = (source + ORIENTATIONS // 2 - 1) % ORIENTATIONS - (ORIENTATIONS // 2 - 1)
    real = _component_at(abs(signed), False)
    if (abs(signed), True) not in COMPONENTS:
        return Term(cosine, real, -1, 0, 0), Term(sine, real, -1, 0, 0)
    imaginary = _component_at(abs(signed), True)
    if signed > 0:
        return Term(cosine, real, sine, imaginary, -1), Term(sine, real, cosine, imaginary, 1)
    return Term(cosine, real, sine, imaginary, 1), Term(sine, real, cosine, imaginary, -1)


def coefficients(
    weight: Float[Tensor, "out in orientations basis"], size: int, transposed: bool = False
) -> Float[Tensor, " numbers"]:
    """Compute the matrices from the terms to the output, one for each frequency.

    Args:
        weight: The weights of the layer.
        size: Side length of the filters.
        transposed: Whether to return the transposed matrices, which lead from the output to the terms.

    Returns:
        The matrices (parts * out, in * terms) of all frequencies one after the other, in one row of numbers.
    """
    out_features, in_features, orientations, basis = weight.shape
    weights = weight.permute(2, 3, 0, 1).reshape(orientations * basis, -1)
    rows = (_term_weights(size).to(weight) @ weights).unflatten(1, (out_features, in_features))
    order = (3, 1, 0, 2) if transposed else (0, 2, 3, 1)
    matrices = [
        part.unflatten(0, shape).permute(order).flatten()
        for part, shape in zip(rows.split([p * t for p, t in _shapes(size)]), _shapes(size), strict=True)
    ]
    return torch.cat(matrices)


def weight_gradient(
    matrices: Sequence[Float[Tensor, "_ _"]], size: int, in_features: int
) -> Float[Tensor, "out in orientations basis"]:
    """Return the gradient by the weights of the layer from those by the transposed matrices of :func:`coefficients`.

    Args:
        matrices: The gradient by the matrix of each frequency.
        size: Side length of the filters.
        in_features: Number of input features.

    Returns:
        The gradient.
    """
    rows = [
        matrix.unflatten(1, (parts, -1)).unflatten(0, (in_features, count)).permute(2, 1, 3, 0).flatten(0, 1)
        for matrix, (parts, count) in zip(matrices, _shapes(size), strict=True)
    ]
    all_rows = torch.cat(rows)
    gradient = _term_weights(size).to(all_rows).t() @ all_rows.flatten(1)
    return gradient.view(ORIENTATIONS, -1, *all_rows.shape[1:]).permute(2, 3, 0, 1)


@cache
def matrix_shapes(size: int, in_features: int, out_features: int) -> tuple[tuple[int, int], ...]:
    """Return the shapes of the transposed matrices of :func:`coefficients`.

    Args:
        size: Side length of the filters.
        in_features: Number of input features.
        out_features: Number of output features.

    Returns:
        The number of input features times terms, and of parts times output features, for each frequency.
    """
    return tuple((count * in_features, parts * out_features) for parts, count in _shapes(size))


def _shapes(size: int) -> list[tuple[int, int]]:
    """Return the numbers of parts of the output and of terms for each frequency."""
    return [(2 if (m, True) in COMPONENTS else 1, len(of_m)) for m, of_m in zip(FREQUENCIES, terms(size), strict=True)]


@cache
def _term_weights(size: int) -> Float[Tensor, "parts_and_terms orientations_and_basis"]:
    """Return the weights of all terms as sums of those of the layer, (parts, terms) of each frequency in turn."""
    matrices = (np.stack([weights for _, weights in _weighted_terms(size, m)], axis=1) for m in FREQUENCIES)
    return torch.from_numpy(
        np.concatenate([matrix.reshape(-1, ORIENTATIONS * basis_size(size)) for matrix in matrices])
    )
