import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tigranet import TIGraNet
from tigranet.baselines import STN, ConvNet, STArchitecture
from tigranet.baselines.convnet import C
from tigranet.baselines.stn import ST, SpatialTransformer
from tigranet.notation import FC


def parameters(net):
    return sum(parameter.numel() for parameter in net.parameters())


def set_to(transformer, affine):
    with torch.no_grad():
        transformer.localise[-1].bias.copy_(torch.tensor(affine).flatten())


# It is what the paper says


@given(
    st.lists(st.builds(C, st.integers(1, 99)) | st.just(ST(6)), max_size=6),
    st.lists(st.builds(FC, st.integers(1, 999)), max_size=3),
)
def test_it_prints_back_exactly(seeing, connected):
    architecture = STArchitecture((C(3), ST(6), *seeing, *connected))
    assert STArchitecture.parse(str(architecture)) == architecture
    assert str(STArchitecture.parse(str(architecture))) == str(architecture)


def test_the_rows_of_table_1():
    assert STArchitecture.parse("paper").layers == (C(10), ST(6), C(20), ST(6), FC(500), FC(300), FC(100))
    assert STArchitecture.parse("paper-small").layers == (C(3), ST(6), C(6), ST(6), FC(50), FC(30), FC(10))


@pytest.mark.parametrize(
    ("preset", "maps", "classes", "size"), [("paper-small", (3, 6), 3, 28), ("paper", (10, 20), 9, 26)]
)
def test_it_has_the_parameters_of_the_convnet_and_of_its_localisation_networks(preset, maps, classes, size):
    localisation = sum((16 * n * 16 + 16) + (16 * 6 + 6) for n in maps)
    assert parameters(STN(preset, classes, size)) == parameters(ConvNet(preset, classes, size)) + localisation
    assert localisation == {"paper-small": 2_540, "paper": 7_916}[preset]


def test_it_has_roughly_as_many_parameters_as_tigranet_as_the_paper_says():
    filters = (10 * 9 + 10) + (20 * 10 * 9 + 20) + 7_916
    connected = (20 * 5 * 5 * 500 + 500) + (500 * 300 + 300) + (300 * 100 + 100) + (100 * 9 + 9)
    assert parameters(STN("paper", 9, 26)) == filters + connected == 441_645
    assert parameters(STN("paper", 9, 26)) == pytest.approx(parameters(TIGraNet("paper", 9)), rel=0.01)


@pytest.mark.parametrize("border", ["none", "zeros"])
@pytest.mark.parametrize("size", [28, (30, 25)])
def test_at_the_start_it_is_the_convnet_with_the_same_weights_and_maps_halved(border, size):
    rival = ConvNet("paper-small", 3, size, 2, border=border)
    net = STN("paper-small", 3, size, 2, border=border)
    for ours, theirs in ((net.filters[0], rival.filters[0]), (net.filters[3], rival.filters[3])):
        ours.load_state_dict(theirs.state_dict())
    net.classifier.load_state_dict(rival.classifier.state_dict())
    maps = images = torch.rand(4, 2, *net.reads[1:])
    for conv in (rival.filters[0], rival.filters[3]):
        maps = conv(maps).relu()
        halves = [side // 2 for side in maps.shape[2:]]
        maps = F.interpolate(maps, halves, mode="bilinear", align_corners=False)
    torch.testing.assert_close(net(images), rival.classifier(maps.flatten(1)), atol=1e-5, rtol=1e-5)


def test_at_the_start_a_transformer_is_the_mean_of_squares():
    maps = torch.rand(4, 3, 8, 12)
    torch.testing.assert_close(SpatialTransformer(3)(maps), F.avg_pool2d(maps, 2))


# It turns what it is told to turn


@pytest.mark.parametrize("side", [8, 9])
def test_set_to_a_quarter_turn_it_turns_the_maps(side):
    upright, turning = SpatialTransformer(3), SpatialTransformer(3)
    maps = torch.rand(4, 3, side, side)
    set_to(turning, [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(turning(maps), torch.rot90(upright(maps), 1, (2, 3)), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(turning(maps), upright(torch.rot90(maps, 1, (2, 3))), atol=1e-5, rtol=1e-5)


def test_set_to_a_shift_it_shifts_the_maps_and_zeros_come_in():
    upright, shifting = SpatialTransformer(1), SpatialTransformer(1)
    maps = torch.rand(2, 1, 8, 8)
    set_to(shifting, [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]])  # a quarter of the width, in half widths
    wanted = F.pad(upright(maps)[..., 1:], (0, 1))
    torch.testing.assert_close(shifting(maps), wanted)


def test_each_image_is_turned_by_itself():
    transformer = SpatialTransformer(1)
    torch.nn.init.normal_(transformer.localise[-1].weight)
    maps = torch.rand(5, 1, 8, 8)
    torch.testing.assert_close(transformer(maps)[2:3], transformer(maps[2:3]))


# It learns


def test_gradients_reach_every_parameter_after_the_first_step():
    net, images, labels = STN("C[3]-ST[6]-C[4]-ST[6]-FC[6]", 3, 14), torch.rand(64, 1, 14, 14), torch.arange(64) % 3
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):  # in the first, the last layers of the localisation networks alone: they hide what is before
        optimiser.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        assert all(transformer.localise[-1].weight.grad.any() for transformer in (net.filters[2], net.filters[5]))
        optimiser.step()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


# It is a well-behaved module


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("C[3]-ST[4]", "ST has the 6 parameters of an affine map of the plane, got 4 in layer 2 ('ST[4]') of 'C[3]-ST"),
        ("C[3]-ST[6,2]", "ST takes 1 number (parameters), got 2 in layer 2"),
        ("C[3]-P[2]", "no layer is called 'P' in layer 2 ('P[2]') of 'C[3]-P[2]': there are C, ST, FC"),
        ("ST[6]-C[3]", "wanted C in layer 1 ('ST[6]') of 'ST[6]-C[3]': an STN is C and ST layers, C first"),
        ("C[3]-FC[5]", "wanted ST after the last layer of 'C[3]-FC[5]'"),
        ("papr", "did you mean 'paper'?"),
    ],
)
def test_errors_name_layer_token_and_whole(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        STArchitecture.parse(text)


def test_images_too_small_are_named():
    with pytest.raises(ValueError, match=r"maps of 2x2 are left for layer 3 \('C\[6\]'\).*needs 3x3: images of 6x6"):
        STN("paper-small", 3, 6)
