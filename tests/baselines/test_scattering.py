import math

import pytest
import scipy.signal
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tigranet.baselines.scattering import ANGLES, HARMONICS, Scattering, coarsening, morlet, torus, wavelets
from tigranet.testing import SQUARE

BUMPS = ((3, 2, 2.0, 1.0), (-4, 1, 1.5, 0.7), (1, -5, 2.5, -0.8), (-2, -3, 1.5, 0.9))


def smooth(size, degrees=0.0, right=0.0):
    """A sum of slanted Gaussians, with next to nothing beyond half of the highest frequency: turned and shifted by its
    formula, so that no interpolation has a part in it."""
    half = (size - 1) / 2
    y, x = torch.meshgrid(*2 * [torch.arange(size, dtype=torch.float64) - half], indexing="ij")
    x, angle = x - right, math.radians(degrees)
    x, y = math.cos(angle) * x + math.sin(angle) * y, math.cos(angle) * y - math.sin(angle) * x
    bumps = [
        k * torch.exp(-((x - p) ** 2 + 1.5 * (y - q) ** 2 + (x - p) * (y - q) / 2) / (2 * r**2)) for p, q, r, k in BUMPS
    ]
    return torch.stack(bumps).sum(0)[None, None]


def change(came, wanted):
    return float((came - wanted).norm() / wanted.norm())


def in_space(j, angle, reach):
    """The Morlet wavelet as a function of space, on the pixels up to ``reach`` away, its spectrum's peak near 1."""
    y, x = torch.meshgrid(*2 * [torch.arange(-reach, reach + 1, dtype=torch.float64)], indexing="ij")
    theta = math.pi * angle / ANGLES
    along, across = math.cos(theta) * x + math.sin(theta) * y, math.cos(theta) * y - math.sin(theta) * x
    sigma, xi = 0.8 * 2**j, 0.75 * math.pi / 2**j
    gaussian = torch.exp(-(along**2 + across**2 / 4) / (2 * sigma**2)) / (2 * math.pi * sigma**2 * 2)
    return gaussian * (torch.exp(1j * xi * along) - math.exp(-((sigma * xi) ** 2) / 2))


# It is what the books say


@pytest.mark.parametrize("angle", range(ANGLES))
def test_the_spectra_are_those_of_the_wavelets_in_space(angle):
    spectrum = torch.fft.fft2(torch.fft.ifftshift(in_space(2, angle, 63), dim=(0, 1)), s=(127, 127))
    torch.testing.assert_close(morlet(127, 127, 2)[angle], spectrum.real, atol=2e-3, rtol=0)
    assert spectrum.imag.abs().max() < 1e-9


def test_the_coefficients_are_those_of_convolution_in_the_plane():
    scales, image = 3, smooth(56)[0, 0]  # with room for all of the wavelets
    size = torus(56, scales)
    norm = float(
        wavelets(size, size, scales, torch.float64, torch.device("cpu"))[0].max() / morlet(size, size, 0).max()
    )

    def filtered(x, j, angle):
        return abs(scipy.signal.fftconvolve(x, in_space(j, angle, 40).numpy(), mode="full")) * norm

    x = (image - image[0, 0]).numpy()  # its border is even
    u1 = [filtered(x, 1, angle) for angle in range(ANGLES)]
    s1 = torch.tensor([u.sum() for u in u1]) / x.size
    between = 3
    s2 = torch.tensor([filtered(u, 2, (a + between) % ANGLES).sum() for a, u in enumerate(u1)]) / x.size

    phi = Scattering(order=2, scales=scales)(image[None, None])[0, 1:]
    orders = [HARMONICS] + 2 * [HARMONICS * ANGLES] + [HARMONICS, HARMONICS * ANGLES, HARMONICS]
    _, _, _, first, second, _ = phi.split(orders)  # S1(0), S2(0, 1), S2(0, 2), S1(1), S2(1, 2), S1(2)
    for came, s in ((first, s1), (second.unflatten(0, (HARMONICS, ANGLES))[:, between], s2)):
        wanted = torch.stack([(s * torch.exp(-2j * math.pi * k * torch.arange(8) / 8)).mean().abs() for k in range(4)])
        torch.testing.assert_close(came, wanted, rtol=0.02, atol=0.02 * float(wanted[0]))


@pytest.mark.parametrize(("order", "scales", "wanted"), [(1, 1, 5), (1, 5, 21), (2, 2, 1 + 8 + 32), (2, 5, 341)])
def test_as_many_features_as_there_are_paths(order, scales, wanted):
    scattering = Scattering(order, scales)
    assert scattering.features_a_map == wanted
    assert scattering(torch.rand(2, 3, 9, 12)).shape == (2, 3 * wanted)
    assert repr(scattering) == f"Scattering(order={order}, scales={scales})"


def test_no_frequency_is_amplified():
    psi = wavelets(64, 64, 5, torch.float64, torch.device("cpu"))
    energy = torch.zeros(64, 64, dtype=torch.float64)
    for j, bank in enumerate(psi):
        kept = torch.fft.fftfreq(64 // coarsening(j), 1 / (64 // coarsening(j))).long() % 64
        energy[kept[:, None], kept] += (bank**2).sum(0)
    both = (energy + energy.flip(0, 1).roll((1, 1), (0, 1))) / 2
    assert both.max() == pytest.approx(1)
    assert both[0, 0] < 1e-20
    ring = torch.fft.fftfreq(64)[:, None].hypot(torch.fft.fftfreq(64))
    assert both[(ring > 1 / 32) & (ring < 3 / 8)].min() > 0.2  # and none that five scales cover is lost


# It has the symmetry it claims


@pytest.mark.parametrize("size", [26, 28, 50])
def test_turning_a_smooth_image_changes_the_features_by_less_than_5_per_cent(size):
    scattering = Scattering()
    upright = scattering(smooth(size))
    angles = [5.0, 11.25, 22.5, 33.0, 45.0, 71.0, 133.0, 200.0, 301.0]
    assert max(change(scattering(smooth(size, angle)), upright) for angle in angles) < 0.05


def test_with_more_room_a_turn_changes_less():
    """Most of what is left on small images is the torus, round which the coarsest wavelets reach."""
    scattering = Scattering()
    small, large = (change(scattering(smooth(size, 33.0)), scattering(smooth(size))) for size in (26, 130))
    assert large < small / 3


@pytest.mark.parametrize("turn", [turn for name, turn in SQUARE.items() if "reflected" not in name])
def test_quarter_turns_change_nearly_nothing(turn):
    image = smooth(28)
    assert change(Scattering()(turn(image)), Scattering()(image)) < 1e-3


@pytest.mark.parametrize("right", [0.5, 1.0, 2.25, 5.0, -7.0])
def test_shifts_change_nearly_nothing(right):
    assert change(Scattering()(smooth(50, right=right)), Scattering()(smooth(50))) < 1e-3


def test_a_mirror_image_is_another():
    image = torch.zeros(1, 1, 28, 28, dtype=torch.float64)
    image[..., 6:20, 12:15], image[..., 17:20, 12:22] = 1, 1  # an L
    scattering = Scattering()
    assert change(scattering(torch.rot90(image, 1, (2, 3))), scattering(image)) < 0.005
    assert change(scattering(image.flip(-1)), scattering(image)) > 0.02


@settings(max_examples=10, deadline=None)
@given(st.floats(0.01, 100.0), st.floats(-3.0, 3.0))
def test_light_scales_and_a_brighter_background_does_not_matter(light, background):
    image = smooth(20)
    torch.testing.assert_close(Scattering(2, 3)(light * image + background), light * Scattering(2, 3)(image))


# It is a well-behaved module


@pytest.mark.parametrize("size", [(1, 1), (2, 7), (16, 33), (64, 64)])
def test_any_size_is_read(size):
    phi = Scattering()(torch.rand(1, 1, *size))
    assert phi.shape == (1, 341)
    assert phi.isfinite().all()
    assert (phi[:, 1:] >= 0).all()


def test_a_blank_image_has_no_coefficients():
    assert Scattering()(torch.full((1, 1, 26, 26), 0.7)).abs().max() < 1e-6


def test_an_image_does_not_see_its_neighbours():
    images = torch.rand(7, 2, 26, 26)
    together = Scattering()(images)
    torch.testing.assert_close(together, torch.cat([Scattering()(image[None]) for image in images]))
    torch.testing.assert_close(together[:, 341:], Scattering()(images[:, 1:]))


def test_single_precision_suffices():
    image = smooth(26)
    torch.testing.assert_close(Scattering()(image.float()).double(), Scattering()(image), rtol=1e-3, atol=1e-6)


def test_gradients_reach_the_image_even_after_inference():
    with torch.inference_mode():
        Scattering(2, 3)(torch.rand(1, 1, 11, 11))
    image = torch.rand(1, 1, 11, 11, requires_grad=True)
    Scattering(2, 3)(image).sum().backward()
    assert image.grad.isfinite().all()
    assert image.grad.any()


@pytest.mark.parametrize(("order", "scales"), [(0, 5), (3, 5), (2, 0)])
def test_wrong_orders_and_scales_are_named(order, scales):
    with pytest.raises(ValueError, match=f"order 1 or 2 and at least 1 scale, got order {order}, scales {scales}"):
        Scattering(order, scales)


@pytest.mark.parametrize("shape", [(26, 26), (0, 1, 26, 26), (2, 1, 0, 26)])
def test_wrong_shapes_are_named(as_a_user, shape):
    with pytest.raises(ValueError, match=r"reads \(batch, maps, height, width\), none of them 0, got \("):
        Scattering()(torch.rand(shape))
