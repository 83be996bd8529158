"""Wavelet scattering of order 1 or 2, averaged over the image and invariant to rotation."""

import math
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

ANGLES = 8
"""Number of orientations of the wavelets over half a turn. The other half would give complex conjugates."""
HARMONICS = 4
"""Number of harmonics that are kept along the angle: 0 to 3. Harmonic 4, the highest that 8 angles can represent, is
left out because its modulus changes as the image rotates from one angle to the next."""
XI, SIGMA, SLANT = 3 * math.pi / 4, 0.8, 0.5
"""Parameters of the finest wavelet: its frequency, the width of its Gaussian along the frequency, and the ratio of this
width to the width across."""
MAX_PIXELS_PER_CHUNK = {"cpu": 2**14, "elsewhere": 2**19}
"""Images are processed in chunks of this many pixels, which fit in the cache of a CPU or in the memory of a GPU."""


class Scattering(nn.Module):
    r"""Scattering coefficients of whole images, which are invariant to shifts and rotations.

    .. math:: S_1(j, \theta) = \int |x * \psi_{j,\theta}|, \qquad
              S_2(j_1, \theta_1, j_2, \theta_2) = \int ||x * \psi_{j_1,\theta_1}| * \psi_{j_2,\theta_2}|

    with :math:`j_1 < j_2` and Morlet wavelets of 8 angles and scales 2^0, 2^1, ..., 2^(scales-1) (Bruna & Mallat,
    2013). The integrals are over the plane, divided by the area of the image. Other implementations average in windows
    of 2^scales pixels; this one is invariant to shifts of any size.

    Rotating the image adds one angle to all :math:`\theta`. As functions of :math:`(j, \theta)` and of
    :math:`(j_1, j_2, \theta_1; \theta_2 - \theta_1)`, the coefficients are then shifted along :math:`\theta` and
    :math:`\theta_1` only, so the moduli of their Fourier coefficients along this axis do not depend on the rotation.
    Harmonic 0 is the average over rotations. The angle between the two wavelets is kept, so a shape and its mirror
    image have different features.

    Outside its border the image is continued with the mean of its border, so a shape on a uniform background has no
    visible frame. The number of scales does not depend on the size of the image: the coarsest wavelet may be larger
    than the image.

    Args:
        order: 1 for :math:`S_1` only, or 2. The mean of the image minus the mean of its border is always included.
        scales: Number of scales.

    Raises:
        ValueError: If ``order`` is not 1 or 2, or ``scales`` is less than 1.

    Example:
        >>> Scattering(order=2, scales=5)(torch.rand(2, 1, 26, 26)).shape
        torch.Size([2, 341])
    """

    def __init__(self, order: int = 2, scales: int = 5) -> None:
        super().__init__()
        if order not in (1, 2) or scales < 1:
            raise ValueError(f"expected order 1 or 2 and at least 1 scale, got order {order} and {scales} scales")
        self.order, self.scales = order, scales
        pairs = scales * (scales - 1) // 2 if order == 2 else 0
        self.features_per_map = 1 + HARMONICS * (scales + ANGLES * pairs)

    def forward(self, images: Float[Tensor, "batch maps height width"]) -> Float[Tensor, "batch features"]:
        """Compute the invariant coefficients.

        Args:
            images: Images of any size.

        Returns:
            The coefficients of the first map, then those of the second, and so on.

        Raises:
            ValueError: If the images do not have four dimensions or are empty.
        """
        if images.ndim != 4 or not images.numel():
            raise ValueError(f"expected nonempty images (batch, maps, height, width), got shape {tuple(images.shape)}")
        sides = [torus_side(side, self.scales) for side in images.shape[2:]]
        max_pixels = MAX_PIXELS_PER_CHUNK["cpu" if images.device.type == "cpu" else "elsewhere"]
        chunks = images.flatten(0, 1).split(max(1, max_pixels // math.prod(sides)))
        features = torch.cat([self._invariants(x, *sides) for x in chunks])
        return features.unflatten(0, images.shape[:2]).flatten(1)

    def _invariants(
        self, x: Float[Tensor, "images height width"], rows: int, columns: int
    ) -> Float[Tensor, "images features"]:
        """Compute the coefficients of images with one channel on a torus of ``rows`` x ``columns`` pixels."""
        area = x[0].numel()
        x = x - _border_mean(x)
        psi = wavelets(rows, columns, self.scales, x.dtype, x.device)
        x_hat = torch.fft.fft2(x, s=(rows, columns))
        invariants = [x.sum((-2, -1))[:, None] / area]
        theta_1, difference = torch.arange(ANGLES)[:, None], torch.arange(ANGLES)
        theta_2 = (theta_1 + difference) % ANGLES
        for j1 in range(self.scales):
            step_1 = sampling_step(j1)
            u1 = torch.fft.ifft2(_subsample(x_hat, step_1)[:, None] * psi[j1]).abs()
            invariants.append(_angle_harmonics(u1.sum((-2, -1)) * (step_1**2 / area)))
            if self.order == 1:
                continue
            u1_hat = torch.fft.fft2(u1)
            for j2 in range(j1 + 1, self.scales):
                step_2 = sampling_step(j2)
                u2 = torch.fft.ifft2(_subsample(u1_hat, step_2 // step_1)[:, :, None] * psi[j2][theta_2]).abs()
                invariants.append(_angle_harmonics(u2.sum((-2, -1)) * (step_2**2 / area)))
        return torch.cat(invariants, 1)

    def extra_repr(self) -> str:
        """Return the constructor arguments for ``repr``."""
        return f"order={self.order}, scales={self.scales}"


def _angle_harmonics(s: Float[Tensor, "images angles *differences"]) -> Float[Tensor, "images invariants"]:
    """Return the moduli of the first harmonics along the angle, which a shift along the angle does not change."""
    return (torch.fft.rfft(s, dim=1)[:, :HARMONICS].abs() / ANGLES).flatten(1)


def _border_mean(x: Float[Tensor, "images height width"]) -> Float[Tensor, "images 1 1"]:
    edges = [x[:, 0], x[:, -1], x[:, :, 0], x[:, :, -1]]
    return torch.cat(edges, -1).mean(-1)[:, None, None]


def _subsample(spectrum: Tensor, step: int) -> Tensor:
    """Return the spectrum of every ``step``-th pixel of a map that has no higher frequencies."""
    if step == 1:
        return spectrum
    for axis in (-2, -1):
        half = spectrum.shape[axis] // step // 2
        positive, negative = spectrum.narrow(axis, 0, half), spectrum.narrow(axis, -half, half)
        spectrum = torch.cat([positive, negative], axis)
    return spectrum / step**2


def torus_side(side: int, scales: int) -> int:
    """Return the side length of the torus on which an image is scattered.

    There are at least 2^scales pixels between the image and its periodic copy, and the side can be halved for every
    scale and stays even.

    Args:
        side: Side length of the image.
        scales: Number of scales.

    Returns:
        Side length of the torus.

    Example:
        >>> torus_side(26, scales=5), torus_side(50, scales=5)
        (64, 96)
    """
    multiple = 2 ** max(scales - 1, 1)
    return -(-(side + 2**scales) // multiple) * multiple


def sampling_step(j: int) -> int:
    """Return the distance in pixels at which maps of scale 2^j are sampled: half of what their wavelet allows.

    Args:
        j: Logarithm of the scale.

    Returns:
        The distance, a power of 2.
    """
    return 2 ** max(j - 1, 0)


@lru_cache(maxsize=8)
def wavelets(
    height: int, width: int, scales: int, dtype: torch.dtype, device: torch.device
) -> tuple[Float[Tensor, "angles _ _"], ...]:
    """Return the spectra of the wavelets of every scale, sampled like the maps of that scale.

    All of them are divided by one number, so that at each frequency the energy of all bands together is at most the
    energy of the image: scattering does not amplify.

    Args:
        height: Height of the torus.
        width: Width of the torus.
        scales: Number of scales.
        dtype: Data type of the result.
        device: Device of the result.

    Returns:
        One tensor of spectra per scale.
    """
    with torch.inference_mode(False):  # they are cached, and a later call may need gradients
        full_size = torch.stack([morlet(height, width, j) for j in range(scales)])
        opposite = full_size.flip(-2, -1).roll((1, 1), (-2, -1))
        max_energy = ((full_size**2 + opposite**2) / 2).sum((0, 1)).max()
        scaled = (morlet(height, width, j, sampling_step(j)) / max_energy.sqrt() for j in range(scales))
        return tuple(psi.to(device, dtype) for psi in scaled)


def morlet(height: int, width: int, j: int, step: int = 1) -> Float[Tensor, "angles _ _"]:
    r"""Return the spectra of the Morlet wavelets of scale 2^j at every angle.

    .. math:: \hat\psi(\omega) = \hat g(\omega - \xi) - \beta \hat g(\omega), \qquad
              \hat g(\omega) = e^{-\sigma^2 (\omega_\parallel^2 + \omega_\perp^2 / s^2) / 2}

    with :math:`\sigma = 0.8 \cdot 2^j`, :math:`|\xi| = \frac{3\pi}{4} 2^{-j}` and the slant s = 1/2. The factor
    :math:`\beta` makes the mean 0. The wavelets are sampled in frequency rather than in space, so the wavelets of
    different angles are rotations of the same function. The row and the column of the highest frequency are set to 0,
    because they have no counterpart of the other sign.

    Args:
        height: Height of the torus.
        width: Width of the torus.
        j: Logarithm of the scale.
        step: Sample every ``step``-th pixel of the torus.

    Returns:
        Real spectra.
    """
    omega_y, omega_x = (
        2 * math.pi * torch.fft.fftfreq(side // step, d=step, dtype=torch.float64) for side in (height, width)
    )
    theta = math.pi / ANGLES * torch.arange(ANGLES, dtype=torch.float64)[:, None, None]
    along = theta.cos() * omega_x + theta.sin() * omega_y[:, None]
    across = theta.cos() * omega_y[:, None] - theta.sin() * omega_x
    sigma, xi = SIGMA * 2**j, XI / 2**j

    def g(omega_along: Tensor) -> Tensor:
        return torch.exp(-(sigma**2) / 2 * (omega_along**2 + (across / SLANT) ** 2))

    psi = g(along - xi) - math.exp(-((sigma * xi) ** 2) / 2) * g(along)
    psi[:, omega_y.argmin()] = 0
    psi[:, :, omega_x.argmin()] = 0
    return psi
