import math
import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import iv

from smooth import settle
from tigranet.baselines import HarmArchitecture, HarmNet
from tigranet.baselines.harmnet import (
    HCN,
    HRC,
    RADII,
    SIDE,
    SIGMA,
    ComplexReLU,
    HarmonicConv,
    MeanModulus,
    ModulusNorm,
    harmonics,
)
from tigranet.testing import SQUARE, blobs, invariance_error

ANGLES = (11, 30, 45, 60, 200, 290)


def parameters(net):
    return sum(parameter.numel() for parameter in net.parameters())


def as_complex(z):
    """(batch, order, map, height, width)"""
    real, imaginary = z.unflatten(1, (2, 2, -1)).unbind(2)
    return torch.complex(real, imaginary)


def as_real(z):
    return torch.stack([z.real, z.imag], 2).flatten(1, 3)


def turned(z, quarters=1):
    """Complex maps as they are when the image is turned: turned, and their phases by their order's multiple."""
    phases = torch.tensor([1, 1j**quarters], dtype=torch.complex64)[:, None, None, None]
    return torch.rot90(z, quarters, (-2, -1)) * phases


# It is what the paper says


@given(st.lists(st.tuples(st.integers(1, 99), st.booleans()), min_size=1, max_size=6))
def test_it_prints_back_exactly(chosen):
    layers, maps = [], 1
    for gives, bent in chosen:
        layers += [HRC(maps, gives), *([HCN(gives)] * bent)]
        maps = gives
    architecture = HarmArchitecture(tuple(layers))
    assert HarmArchitecture.parse(str(architecture)) == architecture
    assert str(HarmArchitecture.parse(str(architecture))) == str(architecture)


def test_the_row_of_table_1():
    text = "HRC[1, 10]-HCN[10]-HRC[10, 10]-HRC[10, 20]-HCN[20]-HRC[20, 20]"
    wanted = (HRC(1, 10), HCN(10), HRC(10, 10), HRC(10, 20), HCN(20), HRC(20, 20))
    assert HarmArchitecture.parse("paper").layers == HarmArchitecture.parse(text).layers == wanted


def test_the_parameters_are_those_of_hand_arithmetic():
    first = 2 * 10 * (3 + 1)  # two orders of order 0; three rings and a phase
    others = 4 * (10 * 10 + 10 * 20 + 20 * 20 + 20 * 9) * (3 + 1)  # two orders of two
    nonlinear, standardised = 10 + 20, 2 * (2 * 10 + 2 * 20)
    assert parameters(HarmNet("paper", 9, 26)) == first + others + nonlinear + standardised + 9 == 14_319
    assert parameters(HarmNet("paper", 3, 28)) == 12_393


def test_the_blocks_are_standardised_and_pooled_between():
    kinds = [type(part).__name__ for part in HarmNet("paper", 9, 26).filters]
    block = ["HarmonicConv", "ComplexReLU", "HarmonicConv", "ModulusNorm"]
    assert kinds == [*block, "CentredMeanPool", *block]


def test_the_rings_are_the_circles_smeared_by_a_gaussian():
    # e^{i m phi} on a circle of radius r becomes exp(-(rho^2 + r^2) / 2 sigma^2) I_m(rho r / sigma^2) e^{i m phi}
    axis = torch.arange(SIDE, dtype=torch.float64) - SIDE // 2
    x, y = axis.expand(SIDE, SIDE), -axis[:, None].expand(SIDE, SIDE)
    rho, phi = torch.hypot(x, y), torch.atan2(y, x)
    for m, of_order in zip((-1, 0, 1), harmonics(), strict=True):
        for r, ring in zip(RADII, of_order, strict=True):
            wanted = torch.exp(-(rho**2) / (2 * SIGMA**2)) * torch.from_numpy(iv(abs(m), (rho * r / SIGMA**2).numpy()))
            wanted = torch.stack([wanted * (m * phi).cos(), wanted * (m * phi).sin()])
            torch.testing.assert_close(ring, (wanted / wanted.norm()).float(), atol=1e-6, rtol=1e-5)


def test_the_convolution_is_that_of_complex_numbers():
    conv = HarmonicConv(3, 4)
    z = torch.randn(2, 2, 3, 9, 9, dtype=torch.complex64)
    rings = torch.complex(*harmonics().unbind(2))
    wanted = torch.zeros(2, 2, 4, 9, 9, dtype=torch.complex64)
    for p in range(2):
        for q in range(2):
            profile = conv.radial[p, q] * torch.exp(1j * conv.beta[p, q])[..., None]
            filters = torch.einsum("oir,ryx->oiyx", profile, rings[p - q + 1])
            wanted[:, p] += F.conv2d(z[:, q], filters, padding=SIDE // 2).detach()
    torch.testing.assert_close(as_complex(conv(as_real(z)).detach()), wanted, atol=1e-4, rtol=1e-4)


def test_images_are_read_as_complex_maps_of_order_0():
    lifting, conv = HarmonicConv(3, 4, of_images=True), HarmonicConv(3, 4)
    with torch.no_grad():
        conv.radial[:, :1], conv.beta[:, :1] = lifting.radial, lifting.beta
    images = torch.rand(2, 3, 9, 9)
    z = torch.stack([images, torch.zeros_like(images)], 1).to(torch.complex64)
    torch.testing.assert_close(lifting(images), conv(as_real(z)), atol=1e-5, rtol=1e-5)


def test_the_nonlinearity_is_relu_of_the_modulus():
    z, part = torch.randn(2, 2, 3, 5, 5, dtype=torch.complex64), ComplexReLU(3)
    torch.nn.init.uniform_(part.bias, -1, 0)
    wanted = (z.abs() + part.bias[:, None, None]).relu() * torch.exp(1j * z.angle())
    torch.testing.assert_close(as_complex(part(as_real(z))), wanted, atol=2e-2, rtol=1e-3)  # SMALLEST's root is 0.01
    assert part(torch.zeros(1, 12, 5, 5)).eq(0).all()


def test_moduli_are_standardised_and_phases_kept():
    z, part = 3 * torch.randn(16, 2, 3, 5, 5, dtype=torch.complex64), ModulusNorm(3)
    came = as_complex(part(as_real(z)))
    variance, mean = torch.var_mean(z.abs(), dim=(0, 3, 4), correction=0, keepdim=True)
    torch.testing.assert_close(came.abs(), ((z.abs() - mean) / variance.sqrt()).relu(), atol=2e-2, rtol=1e-2)
    kept = came.abs() > 1e-3
    torch.testing.assert_close(came[kept] / came[kept].abs(), z[kept] / z[kept].abs(), atol=1e-4, rtol=1e-4)


# It has the symmetry it claims


@pytest.mark.parametrize("quarters", [1, 2, 3])
@pytest.mark.parametrize("part", [HarmonicConv(3, 4), ComplexReLU(3), ModulusNorm(3).eval()])
def test_a_map_of_order_m_turns_and_its_phase_m_times_as_far(part, quarters):
    torch.nn.init.normal_(next(part.parameters()))
    z = torch.randn(2, 2, 3, 8, 8, dtype=torch.complex64)
    with torch.no_grad():
        came, wanted = (as_complex(part(as_real(turned(z, quarters)))), turned(as_complex(part(as_real(z))), quarters))
    torch.testing.assert_close(came, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("size", [28, 17])
def test_quarter_turns_change_nothing(size):
    net, images = settle(HarmNet("paper", 5, size), size), torch.rand(3, 1, size, size)
    turns = [SQUARE[f"{degrees} degrees"] for degrees in (90, 180, 270)]
    assert max(invariance_error(net, images, turn) for turn in turns) < 1e-5


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_its_logits_change_by_less_than_2_per_cent_when_a_smooth_image_turns(seed):
    torch.manual_seed(seed)
    net, images = settle(HarmNet("paper", 5, 28)), blobs(seed=seed)
    assert max(invariance_error(net, images, lambda _, a=a: blobs(a, seed=seed)) for a in ANGLES) < 0.02


def test_it_tells_an_image_from_its_mirror_image():
    net = settle(HarmNet("paper", 5, 28))
    assert invariance_error(net, blobs(), SQUARE["0 degrees, reflected"]) > 0.02


def test_the_mean_modulus_knows_no_phase():
    z, part = torch.randn(2, 2, 3, 5, 5, dtype=torch.complex64), MeanModulus(3)
    turned_phases = z * torch.exp(2j * math.pi * torch.rand(2, 2, 3, 5, 5))
    torch.testing.assert_close(part(as_real(turned_phases)), part(as_real(z)))
    torch.testing.assert_close(part(as_real(z)), z.abs().mean((1, 3, 4)), atol=2e-3, rtol=1e-3)


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
    ("text", "message"),
    [
        ("HRC[10]", "HRC takes 2 numbers (in_maps, out_maps), got 1 in layer 1 ('HRC[10]') of 'HRC[10]'"),
        ("HCN[3]-HRC[3,3]", "wanted HRC in layer 1 ('HCN[3]') of 'HCN[3]-HRC[3,3]': a HarmNet is HRC layers"),
        ("HRC[1,3]-HCN[3]-HCN[3]", "wanted HRC in layer 3 ('HCN[3]')"),
        ("HRC[1,3]-HCN[4]", "layer 2 ('HCN[4]') of 'HRC[1,3]-HCN[4]' reads 4 maps, the layer before it gives 3"),
        ("HRC[1,3]-HRC[2,4]", "layer 2 ('HRC[2,4]') of 'HRC[1,3]-HRC[2,4]' reads 2 maps, the layer before it gives 3"),
        ("papr", "did you mean 'paper'?"),
    ],
)
def test_errors_name_layer_token_and_whole(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        HarmArchitecture.parse(text)


def test_channels_it_does_not_read_are_named():
    with pytest.raises(ValueError, match=r"images have 3 channels, layer 1 \('HRC\[1,10\]'\).*write 'HRC\[3,10\]'"):
        HarmNet("paper", 3, 28, in_maps=3)
