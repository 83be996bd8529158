import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from smooth import settle
from tigranet import TIGraNet
from tigranet.baselines import GroupArchitecture, GroupCNN
from tigranet.baselines.group_cnn import GC, LC, GroupConv, P, disc, turned_discs
from tigranet.notation import FC
from tigranet.testing import SQUARE, blobs, equivariance_error, invariance_error


def parameters(net):
    return sum(parameter.numel() for parameter in net.parameters())


def stepped(maps, turns, quarters=1):
    """Maps as they are when the image makes quarter turns: turned, and their orientations moved on."""
    apart = torch.rot90(maps, quarters, (2, 3)).unflatten(1, (-1, turns))
    return apart.roll(quarters * turns // 4, 2).flatten(1, 2)


# It is what its notation says


@given(
    st.lists(st.builds(GC, st.integers(1, 99)) | st.builds(P, st.integers(1, 9)), max_size=6),
    st.lists(st.builds(FC, st.integers(1, 999)), max_size=3),
)
def test_it_prints_back_exactly(seeing, connected):
    architecture = GroupArchitecture((LC(8, 3), *seeing, *connected))
    assert GroupArchitecture.parse(str(architecture)) == architecture
    assert str(GroupArchitecture.parse(str(architecture))) == str(architecture)


def test_the_parameters_are_those_of_hand_arithmetic():
    filters = 21 * (10 + 20 * 10 * 8 + 50 * 20 * 8) + 2 * (10 + 20 + 50)  # of 21 points; the maps standardised
    connected = (50 * 500 + 500) + (500 * 300 + 300) + (300 * 100 + 100) + (100 * 9 + 9)
    assert parameters(GroupCNN("c8", 9, 26)) == filters + connected == 408_779


@pytest.mark.parametrize(("suffix", "peer", "classes"), [("", "paper", 9), ("-small", "paper-small", 3)])
@pytest.mark.parametrize("group", ["c4", "c8"])
def test_it_has_roughly_as_many_parameters_as_tigranet(group, suffix, peer, classes):
    net = GroupCNN(group + suffix, classes, 28)
    assert parameters(net) == pytest.approx(parameters(TIGraNet(peer, classes)), rel=0.15)


def test_a_filter_is_a_disc():
    assert disc().shape == (21, 2)
    assert turned_discs(8).shape == (8, 21, 7, 7)


def test_the_convolution_is_that_of_each_turned_filter():
    conv, y = GroupConv(2, 3, 4), torch.rand(5, 2 * 4, 9, 9)
    upright = torch.einsum("oijp,pyx->oijyx", conv.w, turned_discs(4)[0])
    wanted = torch.zeros(5, 3, 4, 9, 9)
    for k in range(4):
        for j in range(4):
            turned = torch.rot90(upright[:, :, (j - k) % 4], k, (-2, -1))
            wanted[:, :, k] += F.conv2d(y.unflatten(1, (2, 4))[:, :, j], turned, padding=3).detach()
    torch.testing.assert_close(conv(y).detach(), wanted.flatten(1, 2), atol=1e-5, rtol=1e-4)


# It has the symmetry it claims


@pytest.mark.parametrize("turns", [4, 8])
@pytest.mark.parametrize("of_images", [True, False])
def test_quarter_turns_turn_the_maps_and_move_their_orientations_on(turns, of_images):
    conv = GroupConv(2, 3, turns, of_images)
    y = torch.rand(5, 2 * (1 if of_images else turns), 9, 9)
    for quarters in (1, 2, 3):
        given = torch.rot90(y, quarters, (2, 3)) if of_images else stepped(y, turns, quarters)
        torch.testing.assert_close(conv(given), stepped(conv(y), turns, quarters), atol=1e-5, rtol=1e-4)


def test_an_eighth_of_a_turn_of_a_smooth_image_does_so_within_1_per_cent():
    """At the centre, the one pixel that stays where it is."""
    conv = GroupConv(1, 5, 8, of_images=True)

    def centre(images):
        return conv(images)[..., 14, 14].unflatten(1, (5, 8))

    image, turned = blobs(size=29), blobs(45, size=29)
    assert equivariance_error(centre, image, lambda _: turned, lambda answer: answer.roll(1, 2)) < 0.01
    assert equivariance_error(centre, image, lambda _: turned, lambda answer: answer) > 0.1


@pytest.mark.parametrize("group", ["c4-small", "c8-small", "LC[8,4]-P[2]-GC[5]-P[2]-GC[6]"])
@pytest.mark.parametrize("size", [28, 27, 26])
def test_quarter_turns_change_nothing(group, size):
    net, images = settle(GroupCNN(group, 5, size), size), torch.rand(3, 1, size, size)
    turns = [SQUARE[f"{degrees} degrees"] for degrees in (90, 180, 270)]
    assert max(invariance_error(net, images, turn) for turn in turns) < 1e-4


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_turns_by_45_degrees_change_little_with_8_orientations_and_more_with_4(seed):
    errors = {}
    for turns in (4, 8):
        torch.manual_seed(seed)
        net, images = settle(GroupCNN(f"LC[{turns},10]-P[2]-GC[20]-P[2]-GC[20]-FC[50]", 5, 28)), blobs(seed=seed)
        errors[turns] = max(
            invariance_error(net, images, lambda _, a=a: blobs(a, seed=seed)) for a in (45, 135, 225, 315)
        )
    assert errors[8] < 0.03
    assert errors[4] > 2 * errors[8]


def test_it_tells_an_image_from_its_mirror_image():
    net = settle(GroupCNN("LC[8,10]-P[2]-GC[20]", 5, 28))
    assert invariance_error(net, blobs(), SQUARE["0 degrees, reflected"]) > 0.02


# It learns


def test_gradients_reach_every_parameter():
    net = GroupCNN("LC[4,3]-P[2]-GC[4]-FC[16]", 3, 12)
    F.cross_entropy(net(torch.rand(16, 1, 12, 12)), torch.arange(16) % 3).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


# It is a well-behaved module


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LC[8]", "LC takes 2 numbers (turns, maps), got 1 in layer 1 ('LC[8]') of 'LC[8]'"),
        ("LC[0,3]", "LC has turns of at least 1, got 0 in layer 1"),
        ("GC[3]", "wanted LC in layer 1 ('GC[3]') of 'GC[3]': a group CNN is one LC, then GC and P layers"),
        ("LC[8,3]-LC[8,3]", "wanted GC or P or FC in layer 2 ('LC[8,3]')"),
        ("c8-smal", "did you mean 'c8-small'?"),
    ],
)
def test_errors_name_layer_token_and_whole(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        GroupArchitecture.parse(text)
