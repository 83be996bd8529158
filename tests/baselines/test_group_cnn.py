import copy
import itertools
import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from calibration import calibrate
from tigranet import TIGraNet
from tigranet.baselines import GroupArchitecture, GroupCNN
from tigranet.baselines.baseline import parameter_count
from tigranet.baselines.group_cnn import GC, LC, GroupConv, P, disc_points, rotated_discs
from tigranet.notation import FC
from tigranet.testing import SQUARE, blobs, equivariance_error, invariance_error


def rotate_maps(maps, orientations, quarters=1):
    """Transform maps like the maps of a rotated image: rotate them, and shift their orientations cyclically."""
    by_orientation = torch.rot90(maps, quarters, (2, 3)).unflatten(1, (-1, orientations))
    return by_orientation.roll(quarters * orientations // 4, 2).flatten(1, 2)


# It is the network of its notation


@given(
    st.lists(st.builds(GC, st.integers(1, 99)) | st.builds(P, st.integers(1, 9)), max_size=6),
    st.lists(st.builds(FC, st.integers(1, 999)), max_size=3),
)
def test_parsing_the_text_of_an_architecture_gives_it_back(layers, connected):
    architecture = GroupArchitecture((LC(8, 3), *layers, *connected))
    assert GroupArchitecture.parse(str(architecture)) == architecture
    assert str(GroupArchitecture.parse(str(architecture))) == str(architecture)


def test_parameters_are_counted_by_hand():
    filters = 21 * (10 + 20 * 10 * 8 + 50 * 20 * 8) + 2 * (
        10 + 20 + 50
    )  # 21 points per filter, and batch normalisation
    connected = (50 * 500 + 500) + (500 * 300 + 300) + (300 * 100 + 100) + (100 * 9 + 9)
    assert parameter_count(GroupCNN("c8", 9, 26)) == filters + connected == 408_779


@pytest.mark.parametrize(("suffix", "tigranet_preset", "classes"), [("", "paper", 9), ("-small", "paper-small", 3)])
@pytest.mark.parametrize("group", ["c4", "c8"])
def test_it_has_roughly_as_many_parameters_as_tigranet(group, suffix, tigranet_preset, classes):
    net = GroupCNN(group + suffix, classes, 28)
    assert parameter_count(net) == pytest.approx(parameter_count(TIGraNet(tigranet_preset, classes)), rel=0.15)


def test_the_preset_for_photographs_has_1_to_4_million_parameters():
    maps = [16, 16, 32, 32, 64, 64]
    filters = 21 * (3 * 16 + 8 * sum(before * after for before, after in itertools.pairwise(maps))) + 2 * sum(maps)
    connected = (64 * 128 + 128) + (128 * 10 + 10)
    net = GroupCNN("c8-large", 10, 32, 3)
    assert parameter_count(net) == filters + connected == 1_344_314
    assert net.eval()(torch.rand(1, 3, 32, 32)).shape == (1, 10)


def test_a_filter_has_21_points_on_7x7_pixels():
    assert disc_points().shape == (21, 2)
    assert rotated_discs(8).shape == (8, 21, 7, 7)


def test_the_convolution_is_the_sum_over_rotated_filters():
    conv, y = GroupConv(2, 3, 4), torch.rand(5, 2 * 4, 9, 9)
    upright = torch.einsum("oijp,pyx->oijyx", conv.w, rotated_discs(4)[0])
    expected = torch.zeros(5, 3, 4, 9, 9)
    for k in range(4):
        for j in range(4):
            rotated = torch.rot90(upright[:, :, (j - k) % 4], k, (-2, -1))
            expected[:, :, k] += F.conv2d(y.unflatten(1, (2, 4))[:, :, j], rotated, padding=3).detach()
    torch.testing.assert_close(conv(y).detach(), expected.flatten(1, 2), atol=1e-5, rtol=1e-4)


# It has the symmetry it claims


@pytest.mark.parametrize("orientations", [4, 8])
@pytest.mark.parametrize("from_images", [True, False])
def test_quarter_turns_rotate_the_maps_and_shift_their_orientations(orientations, from_images):
    conv = GroupConv(2, 3, orientations, from_images)
    y = torch.rand(5, 2 * (1 if from_images else orientations), 9, 9)
    for quarters in (1, 2, 3):
        rotated = torch.rot90(y, quarters, (2, 3)) if from_images else rotate_maps(y, orientations, quarters)
        expected = rotate_maps(conv(y), orientations, quarters)
        torch.testing.assert_close(conv(rotated), expected, atol=1e-5, rtol=1e-4)


def test_rotating_a_smooth_image_by_45_degrees_shifts_the_orientations_within_1_per_cent():
    """The test looks at the central pixel, which does not move."""
    conv = GroupConv(1, 5, 8, from_images=True)

    def centre(images):
        return conv(images)[..., 14, 14].unflatten(1, (5, 8))

    image, rotated = blobs(size=29), blobs(45, size=29)
    assert equivariance_error(centre, image, lambda _: rotated, lambda maps: maps.roll(1, 2)) < 0.01
    assert equivariance_error(centre, image, lambda _: rotated, lambda maps: maps) > 0.1


@pytest.mark.parametrize("group", ["c4-small", "c8-small", "LC[8,4]-P[2]-GC[5]-P[2]-GC[6]"])
@pytest.mark.parametrize("size", [28, 27, 26])
def test_quarter_turns_do_not_change_the_logits(group, size):
    net, images = calibrate(GroupCNN(group, 5, size), size), torch.rand(3, 1, size, size)
    rotations = [SQUARE[f"{degrees} degrees"] for degrees in (90, 180, 270)]
    assert max(invariance_error(net, images, rotation) for rotation in rotations) < 1e-4


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rotations_by_45_degrees_change_little_with_8_orientations_and_more_with_4(seed):
    errors = {}
    for orientations in (4, 8):
        torch.manual_seed(seed)
        net, images = (
            calibrate(GroupCNN(f"LC[{orientations},10]-P[2]-GC[20]-P[2]-GC[20]-FC[50]", 5, 28)),
            blobs(seed=seed),
        )
        errors[orientations] = max(
            invariance_error(net, images, lambda _, a=a: blobs(a, seed=seed)) for a in (45, 135, 225, 315)
        )
    assert errors[8] < 0.03
    assert errors[4] > 2 * errors[8]


def test_it_distinguishes_an_image_from_its_mirror_image():
    net = calibrate(GroupCNN("LC[8,10]-P[2]-GC[20]", 5, 28))
    assert invariance_error(net, blobs(), SQUARE["0 degrees, reflected"]) > 0.02


# It learns


def test_gradients_reach_every_parameter():
    net = GroupCNN("LC[4,3]-P[2]-GC[4]-FC[16]", 3, 12)
    F.cross_entropy(net(torch.rand(16, 1, 12, 12)), torch.arange(16) % 3).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


@pytest.mark.gpu
def test_in_16_bits_on_a_gpu_convolution_and_gradients_are_those_of_the_cpu_up_to_rounding():
    conv, y, weights = GroupConv(4, 3, 8), torch.rand(16, 32, 9, 9), torch.randn(16, 24, 9, 9)
    expected, results = [], []
    for device, values in (("cpu", expected), ("cuda", results)):
        net, maps = copy.deepcopy(conv).to(device), y.to(device).requires_grad_()
        with torch.autocast("cuda", torch.bfloat16, enabled=device == "cuda"):
            convolved = net(maps)
        gradients = torch.autograd.grad((convolved.float() * weights.to(device)).sum(), (maps, net.w))
        values += [convolved.detach().float().cpu(), *(gradient.cpu() for gradient in gradients)]
    for result, exact in zip(results, expected, strict=True):
        assert 0 < (result - exact).norm() < 0.02 * exact.norm()


# It is a well-behaved module


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("LC[8]", ["layer 1", "'LC[8]'", "orientations, maps", "1"]),
        ("LC[0,3]", ["layer 1", "'LC[0,3]'", "orientations", "1", "0"]),
        ("GC[3]", ["layer 1", "'GC[3]'", "a group CNN has one LC layer, then GC and P layers"]),
        ("LC[8,3]-LC[8,3]", ["layer 2", "'LC[8,3]'", "GC", "FC"]),
        ("c8-smal", ["'c8-smal'", "'c8-small'"]),
    ],
)
def test_parse_errors_name_the_layer_and_the_architecture(text, fragments):
    with pytest.raises(ValueError, match=re.escape(fragments[0])) as error:
        GroupArchitecture.parse(text)
    for fragment in fragments:
        assert fragment in str(error.value)
