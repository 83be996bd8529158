import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tigranet import TIGraNet
from tigranet.baselines import ConvArchitecture, ConvNet, comparable_convnet
from tigranet.baselines.convnet import GAP, C, P
from tigranet.notation import FC
from tigranet.testing import SQUARE, invariance_error, torus_shift


def parameters(net):
    return sum(parameter.numel() for parameter in net.parameters())


# It is what the paper says


@given(
    st.lists(st.builds(C, st.integers(1, 99)) | st.builds(P, st.integers(1, 9)), max_size=6),
    st.lists(st.builds(GAP, st.integers(1, 9)), max_size=1),
    st.lists(st.builds(FC, st.integers(1, 999)), max_size=3),
)
def test_it_prints_back_exactly(seeing, averaged, connected):
    architecture = ConvArchitecture((C(3), *seeing, *averaged, *connected))
    assert ConvArchitecture.parse(str(architecture)) == architecture
    assert str(ConvArchitecture.parse(str(architecture))) == str(architecture)


def test_the_rows_of_table_1():
    text = "C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]"
    assert str(ConvArchitecture.parse(text)) == text
    assert ConvArchitecture.parse("paper").layers == (C(10), P(2), C(20), P(2), FC(500), FC(300), FC(100))
    assert ConvArchitecture.parse("paper-small").layers == (C(3), P(2), C(6), P(2), FC(50), FC(30), FC(10))


def test_the_parameters_are_those_of_hand_arithmetic():
    filters = (3 * 9 + 3) + (6 * 3 * 9 + 6)
    connected = (50 * 30 + 30) + (30 * 10 + 10) + (10 * 3 + 3)
    inside, padded = ConvNet("paper-small", 3, 28), ConvNet("paper-small", 3, 28, border="zeros")
    assert parameters(inside) == filters + (6 * 5 * 5 * 50 + 50) + connected == 9_621
    assert parameters(padded) == filters + (6 * 7 * 7 * 50 + 50) + connected == 16_821


def test_it_has_roughly_as_many_parameters_as_tigranet_as_the_paper_says():
    filters = (10 * 9 + 10) + (20 * 10 * 9 + 20)
    connected = (20 * 5 * 5 * 500 + 500) + (500 * 300 + 300) + (300 * 100 + 100) + (100 * 9 + 9)
    assert parameters(ConvNet("paper", 9, 26)) == filters + connected == 433_729
    assert parameters(ConvNet("paper", 9, 26)) == pytest.approx(parameters(TIGraNet("paper", 9)), rel=0.02)
    assert parameters(ConvNet("paper-small", 3, 28)) == pytest.approx(parameters(TIGraNet("paper-small", 3)), rel=0.15)


@pytest.mark.parametrize(
    ("preset", "peer", "classes", "size"), [("gap-small", "paper-small", 3, 28), ("gap", "paper", 9, 26)]
)
def test_with_the_global_average_too(preset, peer, classes, size):
    assert parameters(ConvNet(preset, classes, size)) == pytest.approx(parameters(TIGraNet(peer, classes)), rel=0.15)


def test_the_answer_is_that_of_the_layers_written_out():
    net = ConvNet("C[2]-P[2]-FC[4]", num_classes=3, image_size=(6, 8), in_maps=2, border="zeros")
    images = torch.rand(5, 2, 6, 8)
    conv, (first, last) = net.filters[0], (net.classifier[0], net.classifier[2])
    z = F.conv2d(F.pad(images, (1, 1, 1, 1)), conv.weight, conv.bias).clamp(min=0)
    pooled = z.unfold(2, 2, 2).unfold(3, 2, 2).amax((-2, -1)).reshape(5, -1)
    wanted = (pooled @ first.weight.T + first.bias).clamp(min=0) @ last.weight.T + last.bias
    torch.testing.assert_close(net(images), wanted)


def test_filters_that_stay_inside_answer_as_the_others_do_inside():
    inside, padded = (ConvNet("C[2]-C[3]", 3, 8, border=border) for border in ("none", "zeros"))
    for ours, theirs in zip(inside.filters, padded.filters, strict=True):
        ours.load_state_dict(theirs.state_dict())
    images = torch.rand(5, 1, 8, 8)
    maps = padded.filters(images).unflatten(1, (3, 8, 8))[..., 2:-2, 2:-2]
    torch.testing.assert_close(inside.filters(images), maps.flatten(1))


# It has no symmetry, and that is why it is here


def test_its_answer_changes_when_the_image_turns():
    net, images = ConvNet("paper-small", 3, 28), torch.rand(4, 1, 28, 28)
    assert (net(images) - net(torch.rot90(images, 1, (2, 3)))).abs().max() > 1e-3


def test_with_the_global_average_it_is_blind_to_where_not_to_how():
    net, images = ConvNet("C[8]-P[2]-C[16]-GAP[1]", 3, 28), torch.zeros(4, 1, 28, 28)
    images[..., 10:18, 10:18] = torch.rand(4, 1, 8, 8)
    features = net.filters
    assert invariance_error(features, images, torus_shift(4, -2)) < 1e-5  # by as much as is pooled over
    assert invariance_error(features, images, SQUARE["90 degrees"]) > 1e-2


# It learns


def test_gradients_reach_every_parameter():
    net = ConvNet("C[3]-P[2]-C[4]-FC[6]", 3, 12)
    F.cross_entropy(net(torch.rand(64, 1, 12, 12)), torch.arange(64) % 3).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


# It is a well-behaved module


@pytest.mark.parametrize("size", [10, 11, (13, 12), (28, 28), 64])
def test_any_size_is_given_at_construction(size):
    height, width = (size, size) if isinstance(size, int) else size
    net = ConvNet("paper-small", 5, size, in_maps=3)
    assert net(torch.rand(2, 3, height, width)).shape == (2, 5)
    assert net.extra_repr() == f"'{net.architecture}', num_classes=5, reads=(3, {height}, {width})"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("C[3,3]-FC[5]", "C takes 1 number (filters), got 2 in layer 1 ('C[3,3]') of 'C[3,3]-FC[5]'"),
        ("C[3]-P[0]", "P has side of at least 1, got 0 in layer 2 ('P[0]') of 'C[3]-P[0]'"),
        ("C[3]-DP[3]", "no layer is called 'DP' in layer 2 ('DP[3]') of 'C[3]-DP[3]': there are C, P, GAP, FC"),
        ("P[2]-C[3]", "wanted C in layer 1 ('P[2]') of 'P[2]-C[3]': a ConvNet is C and P layers, C first, then a GAP"),
        ("C[3]-GAP[1]-C[3]", "wanted FC in layer 3 ('C[3]')"),
        ("C[3]-FC[5]-P[2]", "wanted FC in layer 3 ('P[2]')"),
        ("papr", "did you mean 'paper'?"),
    ],
)
def test_errors_name_layer_token_and_whole(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ConvArchitecture.parse(text)


def test_wrong_sizes_are_named(as_a_user):
    with pytest.raises(ValueError, match=r"maps of 1x1 are left for layer 4 \('P\[2\]'\).*needs 2x2: images of 3x3"):
        ConvNet("paper-small", 3, 3, border="zeros")
    with pytest.raises(ValueError, match=r"maps of 2x2 are left for layer 3 \('C\[6\]'\).*needs 3x3: images of 7x7"):
        ConvNet("paper-small", 3, 7)
    with pytest.raises(ValueError, match="at least 1, got 0, 1, 28 and 28"):
        ConvNet("paper-small", 0, 28)
    with pytest.raises(ValueError, match=r"reads \(batch, 1, 28, 28\), got shape \(2, 1, 26, 26\)"):
        ConvNet("paper-small", 3, 28)(torch.rand(2, 1, 26, 26))


# Its size is comparable


@pytest.mark.parametrize(("size", "maps", "classes"), [(28, 1, 3), (64, 1, 6), (50, 3, 8), (26, 1, 9)])
@pytest.mark.parametrize("preset", ["paper-small", "paper"])
def test_a_comparable_network_has_nearly_as_many_parameters(preset, size, maps, classes):
    net = TIGraNet(preset, classes, maps)
    units = tuple(layer.units for layer in net.architecture.layers if isinstance(layer, FC))
    rival = comparable_convnet(parameters(net), units, classes, size, maps)
    assert parameters(rival) == pytest.approx(parameters(net), rel=0.15)
    assert rival.architecture.layers[0].filters >= 5  # a rival worth the name
    assert rival(torch.rand(1, maps, size, size)).shape == (1, classes)


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_small_images_have_a_comparable_network_too(size):
    assert comparable_convnet(10, (), 2, size)(torch.rand(1, 1, size, size)).shape == (1, 2)


def test_choosing_it_draws_no_random_numbers():
    torch.manual_seed(3)
    chosen = comparable_convnet(8_700, (50, 30, 10), 3, 28)
    torch.manual_seed(3)
    made = ConvNet(chosen.architecture, 3, 28, border="zeros")
    assert all(torch.equal(a, b) for a, b in zip(chosen.parameters(), made.parameters(), strict=True))
