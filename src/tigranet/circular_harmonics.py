r"""Circular harmonics on rings: small filters that can be rotated by any angle.

A filter of the basis is a wave around a Gaussian ring,

.. math:: \psi_{r,m}(x) = e^{-(|x| - r)^2 / 2 \sigma^2} \, e^{i m \arg x},

and a multiplication by :math:`e^{-i m \theta}` rotates it by the angle :math:`\theta`. This is exact for the formula.
On the pixel grid it is exact for quarter turns, and for other angles as far as the pixels resolve the wave. A ring of
radius r has about :math:`2 \pi r` pixels, so only slow waves are used: the frequencies 0 .. r + 1, at most
:data:`MAX_FREQUENCY`, and one more on the last ring. The angle of the centre is not defined, so the ring r = 0 has the
frequency 0 alone. The pixels of a ring are not spread evenly, so a wave of frequency 4 would have a small mean, of
opposite sign for an image that is rotated by 45 degrees; this mean is subtracted, in proportion to the ring.
"""

import numpy as np
from jaxtyping import Float

RING_WIDTH = 0.6
"""Standard deviation of a ring in pixels."""
LAST_RING_WIDTH = 0.45
"""Standard deviation of the last ring in pixels. It is narrower, because the frame of the filter cuts it off."""
MAX_FREQUENCY = 4
"""Largest frequency of the rings, except for the last."""
CORNER = 0.75
"""Distance in pixels beyond the last ring from which a filter is zero, so that its corners are empty."""


def ring_frequencies(size: int) -> list[tuple[int, int]]:
    """List the waves of the basis.

    Args:
        size: Side length of the filters in pixels, odd.

    Returns:
        The radius of the ring and the frequency of each wave.

    Raises:
        ValueError: If ``size`` is not odd and positive.

    Example:
        >>> ring_frequencies(3)
        [(0, 0), (1, 0), (1, 1), (1, 2)]
    """
    if size < 1 or size % 2 == 0:
        raise ValueError(f"expected an odd side length of the filters, got {size}")
    waves, last = [(0, 0)], size // 2
    for ring in range(1, last + 1):
        largest = min(ring + 1, MAX_FREQUENCY + (ring == last))
        waves += [(ring, frequency) for frequency in range(largest + 1)]
    return waves


def basis_size(size: int) -> int:
    """Count the real filters of the basis: one per wave of frequency 0, and two per other wave.

    Args:
        size: Side length of the filters in pixels, odd.

    Returns:
        Their number.

    Example:
        >>> [basis_size(size) for size in (1, 3, 5, 7)]
        [1, 6, 13, 22]
    """
    return sum(1 if frequency == 0 else 2 for _, frequency in ring_frequencies(size))


def circular_harmonics(size: int, orientations: int) -> Float[np.ndarray, "orientations basis size size"]:
    """Compute the filters of the basis, rotated counter-clockwise to each orientation.

    Args:
        size: Side length of the filters in pixels, odd.
        orientations: Number of orientations N. Orientation j is the angle 2 pi j / N.

    Returns:
        The filters in float64, cosine before sine. Filters of frequency 0 have norm 1. All others have mean 0, and
        about the same norm.

    Example:
        >>> basis = circular_harmonics(5, 8)
        >>> basis.shape
        (8, 13, 5, 5)
        >>> bool(np.allclose(np.rot90(basis[0], axes=(1, 2)), basis[2]))
        True
    """
    centre = size // 2
    offset = np.arange(-centre, centre + 1)
    x, y = np.meshgrid(offset, -offset)  # rows count downwards
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    turn = 2 * np.pi * np.arange(orientations)[:, None, None] / orientations
    filters = []
    for ring, frequency in ring_frequencies(size):
        width = LAST_RING_WIDTH if ring == centre > 0 else RING_WIDTH
        profile = np.exp(-((radius - ring) ** 2) / (2 * width**2)) * (radius <= centre + CORNER)
        if frequency == 0:
            filters.append(np.broadcast_to(profile / np.linalg.norm(profile), (orientations, size, size)))
            continue
        profile = profile * (radius > 0)
        profile *= np.sqrt(2) / np.linalg.norm(profile)
        phase = frequency * (angle - turn)
        for wave in (profile * np.cos(phase), profile * np.sin(phase)):
            filters.append(wave - profile * (wave.sum((1, 2), keepdims=True) / profile.sum()))
    return np.stack(filters, axis=1)
