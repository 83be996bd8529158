import math
import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import iv

from calibration import calibrate
from tigranet.baselines import HarmArchitecture, HarmNet
from tigranet.baselines.baseline import parameter_count
from tigranet.baselines.harmnet import (
    FILTER_SIDE,
    HCN,
    HRC,
    RING_RADII,
    SIGMA,
    ComplexReLU,
    HarmonicConv,
    MeanModulus,
    ModulusNorm,
    harmonic_rings,
)
from tigranet.testing import SQUARE, blobs, invariance_error

ANGLES = (11, 30, 45, 60, 200, 290)


def as_complex(z):
    """Return complex maps of shape (batch, order, map, height, width)."""
    real, imaginary = z.unflatten(1, (2, 2, -1)).unbind(2)
    return torch.complex(real, imaginary)


def as_real(z):
    """Return the layout of the network: (batch, order x (real, imaginary) x map, height, width)."""
    return torch.stack([z.real, z.imag], 2).flatten(1, 3)


def rotate_maps(z, quarters=1):
    """Transform complex maps like the maps of a rotated image: rotate them, and their phases by order x angle."""
    phases = torch.tensor([1, 1j**quarters], dtype=torch.complex64)[:, None, None, None]
    return torch.rot90(z, quarters, (-2, -1)) * phases


# It is the network of the paper


@given(st.lists(st.tuples(st.integers(1, 99), st.booleans()), min_size=1, max_size=6))
def test_parsing_the_text_of_an_architecture_gives_it_back(blocks):
    layers, maps = [], 1
    for out_maps, nonlinear in blocks:
        layers += [HRC(maps, out_maps), *([HCN(out_maps)] * nonlinear)]
        maps = out_maps
    architecture = HarmArchitecture(tuple(layers))
    assert HarmArchitecture.parse(str(architecture)) == architecture
    assert str(HarmArchitecture.parse(str(architecture))) == str(architecture)


def test_the_preset_is_the_row_of_table_1():
    text = "HRC[1, 10]-HCN[10]-HRC[10, 10]-HRC[10, 20]-HCN[20]-HRC[20, 20]"
    expected = (HRC(1, 10), HCN(10), HRC(10, 10), HRC(10, 20), HCN(20), HRC(20, 20))
    assert HarmArchitecture.parse("paper").layers == HarmArchitecture.parse(text).layers == expected


def test_parameters_are_counted_by_hand():
    first = 2 * 10 * (3 + 1)  # two output orders, one input order; three rings and a phase
    others = 4 * (10 * 10 + 10 * 20 + 20 * 20 + 20 * 9) * (3 + 1)  # two output orders, two input orders
    nonlinear, normalisation = 10 + 20, 2 * (2 * 10 + 2 * 20)
    assert parameter_count(HarmNet("paper", 9, 26)) == first + others + nonlinear + normalisation + 9 == 14_319
    assert parameter_count(HarmNet("paper", 3, 28)) == 12_393


def test_blocks_end_with_normalisation_and_are_separated_by_pooling():
    names = [type(module).__name__ for module in HarmNet("paper", 9, 26).filters]
    block = ["HarmonicConv", "ComplexReLU", "HarmonicConv", "ModulusNorm"]
    assert names == [*block, "CentredMeanPool", *block]


def test_rings_are_circles_convolved_with_a_gaussian():
    # e^{i m phi} on a circle of radius r becomes exp(-(rho^2 + r^2) / 2 sigma^2) I_m(rho r / sigma^2) e^{i m phi}
    axis = torch.arange(FILTER_SIDE, dtype=torch.float64) - FILTER_SIDE // 2
    x, y = axis.expand(FILTER_SIDE, FILTER_SIDE), -axis[:, None].expand(FILTER_SIDE, FILTER_SIDE)
    rho, phi = torch.hypot(x, y), torch.atan2(y, x)
    for m, rings in zip((-1, 0, 1), harmonic_rings(), strict=True):
        for r, ring in zip(RING_RADII, rings, strict=True):
            radial = torch.exp(-(rho**2) / (2 * SIGMA**2)) * torch.from_numpy(iv(abs(m), (rho * r / SIGMA**2).numpy()))
            expected = torch.stack([radial * (m * phi).cos(), radial * (m * phi).sin()])
            torch.testing.assert_close(ring, (expected / expected.norm()).float(), atol=1e-6, rtol=1e-5)


def test_the_convolution_equals_one_in_complex_numbers():
    conv = HarmonicConv(3, 4)
    z = torch.randn(2, 2, 3, 9, 9, dtype=torch.complex64)
    rings = torch.complex(*harmonic_rings().unbind(2))
    expected = torch.zeros(2, 2, 4, 9, 9, dtype=torch.complex64)
    for p in range(2):
        for q in range(2):
            profile = conv.radial[p, q] * torch.exp(1j * conv.beta[p, q])[..., None]
            filters = torch.einsum("oir,ryx->oiyx", profile, rings[p - q + 1])
            expected[:, p] += F.conv2d(z[:, q], filters, padding=FILTER_SIDE // 2).detach()
    torch.testing.assert_close(as_complex(conv(as_real(z)).detach()), expected, atol=1e-4, rtol=1e-4)


def test_an_image_is_a_complex_map_of_order_0():
    lifting, conv = HarmonicConv(3, 4, from_images=True), HarmonicConv(3, 4)
    with torch.no_grad():
        conv.radial[:, :1], conv.beta[:, :1] = lifting.radial, lifting.beta
    images = torch.rand(2, 3, 9, 9)
    z = torch.stack([images, torch.zeros_like(images)], 1).to(torch.complex64)
    torch.testing.assert_close(lifting(images), conv(as_real(z)), atol=1e-5, rtol=1e-5)


def test_the_nonlinearity_is_relu_of_the_modulus():
    z, nonlinearity = torch.randn(2, 2, 3, 5, 5, dtype=torch.complex64), ComplexReLU(3)
    torch.nn.init.uniform_(nonlinearity.bias, -1, 0)
    expected = (z.abs() + nonlinearity.bias[:, None, None]).relu() * torch.exp(1j * z.angle())
    torch.testing.assert_close(
        as_complex(nonlinearity(as_real(z))), expected, atol=2e-2, rtol=1e-3
    )  # sqrt(epsilon) is 0.01
    assert nonlinearity(torch.zeros(1, 12, 5, 5)).eq(0).all()


def test_moduli_are_normalised_and_phases_do_not_change():
    z, norm = 3 * torch.randn(16, 2, 3, 5, 5, dtype=torch.complex64), ModulusNorm(3)
    output = as_complex(norm(as_real(z)))
    variance, mean = torch.var_mean(z.abs(), dim=(0, 3, 4), correction=0, keepdim=True)
    torch.testing.assert_close(output.abs(), ((z.abs() - mean) / variance.sqrt()).relu(), atol=2e-2, rtol=1e-2)
    positive = output.abs() > 1e-3
    phases = z[positive] / z[positive].abs()
    torch.testing.assert_close(output[positive] / output[positive].abs(), phases, atol=1e-4, rtol=1e-4)


# It has the symmetry it claims


@pytest.mark.parametrize("quarters", [1, 2, 3])
@pytest.mark.parametrize("module", [HarmonicConv(3, 4), ComplexReLU(3), ModulusNorm(3).eval()])
def test_rotation_rotates_a_map_of_order_m_and_multiplies_its_phase(module, quarters):
    torch.nn.init.normal_(next(module.parameters()))
    z = torch.randn(2, 2, 3, 8, 8, dtype=torch.complex64)
    with torch.no_grad():
        output = as_complex(module(as_real(rotate_maps(z, quarters))))
        expected = rotate_maps(as_complex(module(as_real(z))), quarters)
    torch.testing.assert_close(output, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("size", [28, 17])
def test_quarter_turns_do_not_change_the_logits(size):
    net, images = calibrate(HarmNet("paper", 5, size), size), torch.rand(3, 1, size, size)
    rotations = [SQUARE[f"{degrees} degrees"] for degrees in (90, 180, 270)]
    assert max(invariance_error(net, images, rotation) for rotation in rotations) < 1e-5


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rotating_a_smooth_image_changes_the_logits_by_less_than_2_per_cent(seed):
    torch.manual_seed(seed)
    net, images = calibrate(HarmNet("paper", 5, 28)), blobs(seed=seed)
    assert max(invariance_error(net, images, lambda _, a=a: blobs(a, seed=seed)) for a in ANGLES) < 0.02


def test_it_distinguishes_an_image_from_its_mirror_image():
    net = calibrate(HarmNet("paper", 5, 28))
    assert invariance_error(net, blobs(), SQUARE["0 degrees, reflected"]) > 0.02


def test_the_mean_modulus_does_not_depend_on_phases():
    z, pool = torch.randn(2, 2, 3, 5, 5, dtype=torch.complex64), MeanModulus(3)
    other_phases = z * torch.exp(2j * math.pi * torch.rand(2, 2, 3, 5, 5))
    torch.testing.assert_close(pool(as_real(other_phases)), pool(as_real(z)))
    torch.testing.assert_close(pool(as_real(z)), z.abs().mean((1, 3, 4)), atol=2e-3, rtol=1e-3)


# It learns


def test_gradients_reach_every_parameter():
    net = HarmNet("HRC[1,3]-HCN[3]-HRC[3,3]-HRC[3,4]-HCN[4]-HRC[4,4]", 3, 12)
    F.cross_entropy(net(torch.rand(16, 1, 12, 12)), torch.arange(16) % 3).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


def test_a_blank_image_has_finite_gradients():
    net = HarmNet("HRC[1,3]-HCN[3]-HRC[3,3]", 3, 12)
    net(torch.zeros(2, 1, 12, 12)).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters())


# It is a well-behaved module


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("HRC[10]", ["layer 1", "'HRC[10]'", "in_maps, out_maps", "1"]),
        ("HCN[3]-HRC[3,3]", ["layer 1", "'HCN[3]'", "'HCN[3]-HRC[3,3]'", "a HarmNet has HRC layers"]),
        ("HRC[1,3]-HCN[3]-HCN[3]", ["layer 3", "'HCN[3]'", "HRC"]),
        ("HRC[1,3]-HCN[4]", ["layer 2", "'HCN[4]'", "'HRC[1,3]-HCN[4]'", "reads 4 maps", "3 output maps"]),
        ("HRC[1,3]-HRC[2,4]", ["layer 2", "'HRC[2,4]'", "'HRC[1,3]-HRC[2,4]'", "reads 2 maps", "3 output maps"]),
        ("papr", ["'papr'", "'paper'"]),
    ],
)
def test_parse_errors_name_the_layer_and_the_architecture(text, fragments):
    with pytest.raises(ValueError, match=re.escape(fragments[0])) as error:
        HarmArchitecture.parse(text)
    for fragment in fragments:
        assert fragment in str(error.value)


def test_a_wrong_number_of_channels_is_rejected():
    with pytest.raises(ValueError, match=r"layer 1 \('HRC\[1,10\]'\).*1 channels.*in_maps is 3.*'HRC\[3,10\]'"):
        HarmNet("paper", 3, 28, in_maps=3)
