"""Wavelet scattering of order 1 or 2, averaged over the plane and made invariant over rotation."""

import math
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

ANGLES = 8
"""Orientations of the wavelets, over half a turn: the other half has their conjugates."""
HARMONICS = 4
"""What is kept along the angle: harmonics 0 to 3. The next, the last that 8 angles carry, is left out: they see its
modulus change as the image turns from one of them to the next."""
XI, SIGMA, SLANT = 3 * math.pi / 4, 0.8, 0.5
"""The finest wavelet: its frequency, the width of its Gaussian along it, and that width as a part of the one across."""
PIXELS_AT_ONCE = {"cpu": 2**14, "elsewhere": 2**19}
"""Images are taken a few at a time: on a CPU what is in hand stays in its cache, elsewhere it fits in memory."""


class Scattering(nn.Module):
    r"""Scattering coefficients of whole images, which neither shifts nor turns change.

    .. math:: S_1(j, \theta) = \int |x * \psi_{j,\theta}|, \qquad
              S_2(j_1, \theta_1, j_2, \theta_2) = \int ||x * \psi_{j_1,\theta_1}| * \psi_{j_2,\theta_2}|

    with j_1 < j_2, Morlet wavelets of 8 angles and scales 2^0, 2^1, ..., 2^(scales-1) (Bruna & Mallat, 2013). The
    integrals run over the plane, as a part of the image's area: where others average in windows of 2^scales, this is
    invariant to shifts of any size. Turning the image adds one angle to all theta at once. As functions of (j, theta)
    and of (j_1, j_2, theta_1; theta_2 - theta_1) the coefficients are then shifted along theta and theta_1 alone, and
    the modulus of their Fourier series along it is free of the angle; harmonic 0 is the average over rotations. The
    angle between two wavelets is kept, and with it what tells a shape from its mirror image.

    Beyond its border the image goes on as the mean of its border, so that a shape before an even background has no
    frame. There are as many scales as asked for on an image of any size: the coarsest wavelet may be larger than it.

    Args:
        order: 1 for S_1 alone, or 2. The mean of the image, less that of its border, is there as well.
        scales: how many scales.

    >>> Scattering(order=2, scales=5)(torch.rand(2, 1, 26, 26)).shape
    torch.Size([2, 341])
    """

    def __init__(self, order: int = 2, scales: int = 5) -> None:
        super().__init__()
        if order not in (1, 2) or scales < 1:
            raise ValueError(f"scattering has order 1 or 2 and at least 1 scale, got order {order}, scales {scales}")
        self.order, self.scales = order, scales
        pairs = scales * (scales - 1) // 2 if order == 2 else 0
        self.features_a_map = 1 + HARMONICS * (scales + ANGLES * pairs)

    def forward(self, images: Float[Tensor, "batch maps height width"]) -> Float[Tensor, "batch features"]:
        """The invariant coefficients, map after map."""
        if images.ndim != 4 or not images.numel():
            raise ValueError(
                f"scattering reads (batch, maps, height, width), none of them 0, got {tuple(images.shape)}"
            )
        sides = [torus(side, self.scales) for side in images.shape[2:]]
        room = PIXELS_AT_ONCE["cpu" if images.device.type == "cpu" else "elsewhere"]
        some = images.flatten(0, 1).split(max(1, room // math.prod(sides)))
        return torch.cat([self._invariants(x, *sides) for x in some]).unflatten(0, images.shape[:2]).flatten(1)

    def _invariants(
        self, x: Float[Tensor, "images height width"], down: int, right: int
    ) -> Float[Tensor, "images features"]:
        area = x[0].numel()
        x = x - _border_mean(x)
        psi = wavelets(down, right, self.scales, x.dtype, x.device)
        x_hat = torch.fft.fft2(x, s=(down, right))
        found = [x.sum((-2, -1))[:, None] / area]
        turned = (
            torch.arange(ANGLES)[:, None] + torch.arange(ANGLES)
        ) % ANGLES  # theta_2 from theta_1 and theirs between
        for j1 in range(self.scales):
            step = coarsening(j1)
            u1 = torch.fft.ifft2(_low(x_hat, step)[:, None] * psi[j1]).abs()
            found.append(_along_angle(u1.sum((-2, -1)) * (step**2 / area)))
            if self.order == 1:
                continue
            u1_hat = torch.fft.fft2(u1)
            for j2 in range(j1 + 1, self.scales):
                ahead = coarsening(j2)
                u2 = torch.fft.ifft2(_low(u1_hat, ahead // step)[:, :, None] * psi[j2][turned]).abs()
                found.append(_along_angle(u2.sum((-2, -1)) * (ahead**2 / area)))
        return torch.cat(found, 1)

    def extra_repr(self) -> str:
        return f"order={self.order}, scales={self.scales}"


def _along_angle(s: Float[Tensor, "images angles *between"]) -> Float[Tensor, "images invariants"]:
    """The modulus of the first harmonics: what a shift along the angle does not change."""
    return (torch.fft.rfft(s, dim=1)[:, :HARMONICS].abs() / ANGLES).flatten(1)


def _border_mean(x: Float[Tensor, "images height width"]) -> Float[Tensor, "images 1 1"]:
    edges = [x[:, 0], x[:, -1], x[:, :, 0], x[:, :, -1]]
    return torch.cat(edges, -1).mean(-1)[:, None, None]


def _low(spectrum: Tensor, step: int) -> Tensor:
    """The spectrum of every ``step``-th pixel of a map without higher frequencies."""
    if step == 1:
        return spectrum
    for axis in (-2, -1):
        half = spectrum.shape[axis] // step // 2
        low, high = spectrum.narrow(axis, 0, half), spectrum.narrow(axis, -half, half)
        spectrum = torch.cat([low, high], axis)
    return spectrum / step**2


def torus(side: int, scales: int) -> int:
    """The side of the torus on which an image of ``side`` pixels is scattered: room of 2^scales between it and itself,
    and an even number of pixels however often it is halved.

    >>> torus(26, scales=5), torus(50, scales=5)
    (64, 96)
    """
    multiple = 2 ** max(scales - 1, 1)
    return -(-(side + 2**scales) // multiple) * multiple


def coarsening(j: int) -> int:
    """Maps of scale 2^j are kept at every so-many-th pixel: twice as densely as their wavelet asks for."""
    return 2 ** max(j - 1, 0)


@lru_cache(maxsize=8)
def wavelets(
    height: int, width: int, scales: int, dtype: torch.dtype, device: torch.device
) -> tuple[Float[Tensor, "angles _ _"], ...]:
    """The spectra of the wavelets of each scale, on the torus at the pixels that maps of this scale are kept at.

    They are divided by one number, so that the energy of all bands together is at most that of the image, at each
    frequency: scattering does not amplify.
    """
    with torch.inference_mode(False):  # they are kept, and may meet a gradient later
        whole = torch.stack([morlet(height, width, j) for j in range(scales)])
        opposite = whole.flip(-2, -1).roll((1, 1), (-2, -1))
        largest = ((whole**2 + opposite**2) / 2).sum((0, 1)).max()
        scaled = (morlet(height, width, j, coarsening(j)) / largest.sqrt() for j in range(scales))
        return tuple(psi.to(device, dtype) for psi in scaled)


def morlet(height: int, width: int, j: int, step: int = 1) -> Float[Tensor, "angles _ _"]:
    r"""The spectra of the Morlet wavelets of scale 2^j, at every angle, for every ``step``-th pixel of a torus.

    .. math:: \hat\psi(\omega) = \hat g(\omega - \xi) - \beta \hat g(\omega), \qquad
              \hat g(\omega) = e^{-\sigma^2 (\omega_\parallel^2 + \omega_\perp^2 / s^2) / 2}

    with :math:`\sigma = 0.8 \cdot 2^j`, :math:`|\xi| = \frac{3\pi}{4} 2^{-j}` and the slant s = 1/2; beta makes the
    mean 0. They are sampled in frequency and not in space, so that the wavelet of another angle is the same function
    turned. The row and the column of the highest frequency, which have no partner of the other sign, are left out.
    """
    down, right = (
        2 * math.pi * torch.fft.fftfreq(side // step, d=step, dtype=torch.float64) for side in (height, width)
    )
    theta = math.pi / ANGLES * torch.arange(ANGLES, dtype=torch.float64)[:, None, None]
    along = theta.cos() * right + theta.sin() * down[:, None]
    across = theta.cos() * down[:, None] - theta.sin() * right
    sigma, xi = SIGMA * 2**j, XI / 2**j

    def g(ahead: Tensor) -> Tensor:
        return torch.exp(-(sigma**2) / 2 * (ahead**2 + (across / SLANT) ** 2))

    psi = g(along - xi) - math.exp(-((sigma * xi) ** 2) / 2) * g(along)
    psi[:, down.argmin()] = 0
    psi[:, :, right.argmin()] = 0
    return psi
