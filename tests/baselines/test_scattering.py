import math

import pytest
import scipy.signal
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tigranet.baselines.scattering import (
    ANGLES,
    HARMONICS,
    Scattering,
    morlet,
    sampling_step,
    torus_side,
    wavelets,
)
from tigranet.testing import SQUARE

BUMPS = ((3, 2, 2.0, 1.0), (-4, 1, 1.5, 0.7), (1, -5, 2.5, -0.8), (-2, -3, 1.5, 0.9))


def smooth_image(size, degrees=0.0, right=0.0):
    """Return a sum of slanted Gaussians, with almost no energy above half of the highest frequency.

    It is rotated and shifted by its formula, without interpolation.
    """
    half = (size - 1) / 2
    y, x = torch.meshgrid(*2 * [torch.arange(size, dtype=torch.float64) - half], indexing="ij")
    x, angle = x - right, math.radians(degrees)
    x, y = math.cos(angle) * x + math.sin(angle) * y, math.cos(angle) * y - math.sin(angle) * x
    bumps = [
        k * torch.exp(-((x - p) ** 2 + 1.5 * (y - q) ** 2 + (x - p) * (y - q) / 2) / (2 * r**2)) for p, q, r, k in BUMPS
    ]
    return torch.stack(bumps).sum(0)[None, None]


def relative_difference(actual, expected):
    return float((actual - expected).norm() / expected.norm())


def spatial_wavelet(j, angle, reach):
    """Return the Morlet wavelet on the pixels up to ``reach`` from its centre. The peak of its spectrum is near 1."""
    y, x = torch.meshgrid(*2 * [torch.arange(-reach, reach + 1, dtype=torch.float64)], indexing="ij")
    theta = math.pi * angle / ANGLES
    along, across = math.cos(theta) * x + math.sin(theta) * y, math.cos(theta) * y - math.sin(theta) * x
    sigma, xi = 0.8 * 2**j, 0.75 * math.pi / 2**j
    gaussian = torch.exp(-(along**2 + across**2 / 4) / (2 * sigma**2)) / (2 * math.pi * sigma**2 * 2)
    return gaussian * (torch.exp(1j * xi * along) - math.exp(-((sigma * xi) ** 2) / 2))


# It is the published transform


@pytest.mark.parametrize("angle", range(ANGLES))
def test_spectra_are_fourier_transforms_of_the_wavelets_in_space(angle):
    spectrum = torch.fft.fft2(torch.fft.ifftshift(spatial_wavelet(2, angle, 63), dim=(0, 1)), s=(127, 127))
    torch.testing.assert_close(morlet(127, 127, 2)[angle], spectrum.real, atol=2e-3, rtol=0)
    assert spectrum.imag.abs().max() < 1e-9


def test_coefficients_equal_convolutions_in_the_plane():
    scales, image = 3, smooth_image(56)[0, 0]  # large enough for all wavelets
    size = torus_side(56, scales)
    norm = float(
        wavelets(size, size, scales, torch.float64, torch.device("cpu"))[0].max() / morlet(size, size, 0).max()
    )

    def wavelet_modulus(x, j, angle):
        return abs(scipy.signal.fftconvolve(x, spatial_wavelet(j, angle, 40).numpy(), mode="full")) * norm

    x = (image - image[0, 0]).numpy()  # its border is constant
    u1 = [wavelet_modulus(x, 1, angle) for angle in range(ANGLES)]
    s1 = torch.tensor([u.sum() for u in u1]) / x.size
    difference = 3
    s2 = torch.tensor([wavelet_modulus(u, 2, (a + difference) % ANGLES).sum() for a, u in enumerate(u1)]) / x.size

    phi = Scattering(order=2, scales=scales)(image[None, None])[0, 1:]
    sizes = [HARMONICS] + 2 * [HARMONICS * ANGLES] + [HARMONICS, HARMONICS * ANGLES, HARMONICS]
    _, _, _, first, second, _ = phi.split(sizes)  # S1(0), S2(0, 1), S2(0, 2), S1(1), S2(1, 2), S1(2)
    for actual, s in ((first, s1), (second.unflatten(0, (HARMONICS, ANGLES))[:, difference], s2)):
        expected = torch.stack(
            [(s * torch.exp(-2j * math.pi * k * torch.arange(8) / 8)).mean().abs() for k in range(4)]
        )
        torch.testing.assert_close(actual, expected, rtol=0.02, atol=0.02 * float(expected[0]))


@pytest.mark.parametrize(("order", "scales", "features"), [(1, 1, 5), (1, 5, 21), (2, 2, 1 + 8 + 32), (2, 5, 341)])
def test_the_number_of_features(order, scales, features):
    scattering = Scattering(order, scales)
    assert scattering.features_per_map == features
    assert scattering(torch.rand(2, 3, 9, 12)).shape == (2, 3 * features)
    assert repr(scattering) == f"Scattering(order={order}, scales={scales})"


def test_no_frequency_is_amplified():
    psi = wavelets(64, 64, 5, torch.float64, torch.device("cpu"))
    energy = torch.zeros(64, 64, dtype=torch.float64)
    for j, bank in enumerate(psi):
        side = 64 // sampling_step(j)
        frequencies = torch.fft.fftfreq(side, 1 / side).long() % 64
        energy[frequencies[:, None], frequencies] += (bank**2).sum(0)
    symmetric = (energy + energy.flip(0, 1).roll((1, 1), (0, 1))) / 2
    assert symmetric.max() == pytest.approx(1)
    assert symmetric[0, 0] < 1e-20
    radius = torch.fft.fftfreq(64)[:, None].hypot(torch.fft.fftfreq(64))
    assert symmetric[(radius > 1 / 32) & (radius < 3 / 8)].min() > 0.2  # frequencies that five scales cover are kept


# It has the symmetry it claims


@pytest.mark.parametrize("size", [26, 28, 50])
def test_rotating_a_smooth_image_changes_the_features_by_less_than_5_per_cent(size):
    scattering = Scattering()
    upright = scattering(smooth_image(size))
    angles = [5.0, 11.25, 22.5, 33.0, 45.0, 71.0, 133.0, 200.0, 301.0]
    assert max(relative_difference(scattering(smooth_image(size, angle)), upright) for angle in angles) < 0.05


def test_rotation_changes_the_features_less_on_larger_images():
    """Most of the error on small images comes from the coarsest wavelets, which reach around the torus."""
    scattering = Scattering()
    small, large = (
        relative_difference(scattering(smooth_image(size, 33.0)), scattering(smooth_image(size))) for size in (26, 130)
    )
    assert large < small / 3


@pytest.mark.parametrize("rotation", [symmetry for name, symmetry in SQUARE.items() if "reflected" not in name])
def test_quarter_turns_hardly_change_the_features(rotation):
    image = smooth_image(28)
    assert relative_difference(Scattering()(rotation(image)), Scattering()(image)) < 1e-3


@pytest.mark.parametrize("right", [0.5, 1.0, 2.25, 5.0, -7.0])
def test_shifts_hardly_change_the_features(right):
    assert relative_difference(Scattering()(smooth_image(50, right=right)), Scattering()(smooth_image(50))) < 1e-3


def test_a_mirror_image_has_different_features():
    image = torch.zeros(1, 1, 28, 28, dtype=torch.float64)
    image[..., 6:20, 12:15], image[..., 17:20, 12:22] = 1, 1  # the letter L
    scattering = Scattering()
    assert relative_difference(scattering(torch.rot90(image, 1, (2, 3))), scattering(image)) < 0.005
    assert relative_difference(scattering(image.flip(-1)), scattering(image)) > 0.02


@settings(max_examples=10, deadline=None)
@given(st.floats(0.01, 100.0), st.floats(-3.0, 3.0))
def test_features_scale_with_contrast_and_do_not_depend_on_the_background(contrast, background):
    image = smooth_image(20)
    torch.testing.assert_close(Scattering(2, 3)(contrast * image + background), contrast * Scattering(2, 3)(image))


# It is a well-behaved module


@pytest.mark.parametrize("size", [(1, 1), (2, 7), (16, 33), (64, 64)])
def test_images_may_have_any_size(size):
    phi = Scattering()(torch.rand(1, 1, *size))
    assert phi.shape == (1, 341)
    assert phi.isfinite().all()
    assert (phi[:, 1:] >= 0).all()


def test_features_of_a_constant_image_are_zero():
    assert Scattering()(torch.full((1, 1, 26, 26), 0.7)).abs().max() < 1e-6


def test_features_do_not_depend_on_other_images_or_channels():
    images = torch.rand(7, 2, 26, 26)
    features = Scattering()(images)
    torch.testing.assert_close(features, torch.cat([Scattering()(image[None]) for image in images]))
    torch.testing.assert_close(features[:, 341:], Scattering()(images[:, 1:]))


def test_single_precision_is_sufficient():
    image = smooth_image(26)
    torch.testing.assert_close(Scattering()(image.float()).double(), Scattering()(image), rtol=1e-3, atol=1e-6)


def test_gradients_reach_the_image_even_after_inference():
    with torch.inference_mode():
        Scattering(2, 3)(torch.rand(1, 1, 11, 11))
    image = torch.rand(1, 1, 11, 11, requires_grad=True)
    Scattering(2, 3)(image).sum().backward()
    assert image.grad.isfinite().all()
    assert image.grad.any()


@pytest.mark.parametrize(("order", "scales"), [(0, 5), (3, 5), (2, 0)])
def test_invalid_orders_and_scales_are_rejected(order, scales):
    with pytest.raises(ValueError, match=f"order 1 or 2.*at least 1 scale.*order {order} and {scales} scales"):
        Scattering(order, scales)


@pytest.mark.parametrize("shape", [(26, 26), (0, 1, 26, 26), (2, 1, 0, 26)])
def test_invalid_shapes_are_rejected(without_shape_checks, shape):
    with pytest.raises(ValueError, match=r"\(batch, maps, height, width\)") as error:
        Scattering()(torch.rand(shape))
    assert str(shape) in str(error.value)
