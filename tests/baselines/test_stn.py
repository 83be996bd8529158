import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tigranet import TIGraNet
from tigranet.baselines import STN, ConvNet, STArchitecture
from tigranet.baselines.baseline import parameter_count
from tigranet.baselines.convnet import C
from tigranet.baselines.stn import ST, SpatialTransformer
from tigranet.notation import FC


def set_affine_map(transformer, affine):
    with torch.no_grad():
        transformer.localise[-1].bias.copy_(torch.tensor(affine).flatten())


# It is the network of the paper


@given(
    st.lists(st.builds(C, st.integers(1, 99)) | st.just(ST(6)), max_size=6),
    st.lists(st.builds(FC, st.integers(1, 999)), max_size=3),
)
def test_parsing_the_text_of_an_architecture_gives_it_back(layers, connected):
    architecture = STArchitecture((C(3), ST(6), *layers, *connected))
    assert STArchitecture.parse(str(architecture)) == architecture
    assert str(STArchitecture.parse(str(architecture))) == str(architecture)


def test_presets_are_the_rows_of_table_1():
    assert STArchitecture.parse("paper").layers == (C(10), ST(6), C(20), ST(6), FC(500), FC(300), FC(100))
    assert STArchitecture.parse("paper-small").layers == (C(3), ST(6), C(6), ST(6), FC(50), FC(30), FC(10))


@pytest.mark.parametrize(
    ("preset", "maps", "classes", "size"), [("paper-small", (3, 6), 3, 28), ("paper", (10, 20), 9, 26)]
)
def test_it_has_the_parameters_of_the_convnet_and_the_localisation_networks(preset, maps, classes, size):
    localisation = sum((16 * n * 16 + 16) + (16 * 6 + 6) for n in maps)
    assert parameter_count(STN(preset, classes, size)) == parameter_count(ConvNet(preset, classes, size)) + localisation
    assert localisation == {"paper-small": 2_540, "paper": 7_916}[preset]


def test_it_has_roughly_as_many_parameters_as_tigranet_as_stated_in_the_paper():
    filters = (10 * 9 + 10) + (20 * 10 * 9 + 20) + 7_916
    connected = (20 * 5 * 5 * 500 + 500) + (500 * 300 + 300) + (300 * 100 + 100) + (100 * 9 + 9)
    assert parameter_count(STN("paper", 9, 26)) == filters + connected == 441_645
    assert parameter_count(STN("paper", 9, 26)) == pytest.approx(parameter_count(TIGraNet("paper", 9)), rel=0.01)


@pytest.mark.parametrize("border", ["none", "zeros"])
@pytest.mark.parametrize("size", [28, (30, 25)])
def test_before_training_it_is_the_convnet_with_interpolation_instead_of_pooling(border, size):
    convnet = ConvNet("paper-small", 3, size, 2, border=border)
    net = STN("paper-small", 3, size, 2, border=border)
    for target, source in ((net.filters[0], convnet.filters[0]), (net.filters[3], convnet.filters[3])):
        target.load_state_dict(source.state_dict())
    net.classifier.load_state_dict(convnet.classifier.state_dict())
    maps = images = torch.rand(4, 2, *net.input_shape[1:])
    for conv in (convnet.filters[0], convnet.filters[3]):
        maps = conv(maps).relu()
        halves = [side // 2 for side in maps.shape[2:]]
        maps = F.interpolate(maps, halves, mode="bilinear", align_corners=False)
    torch.testing.assert_close(net(images), convnet.classifier(maps.flatten(1)), atol=1e-5, rtol=1e-5)


def test_before_training_a_transformer_is_mean_pooling():
    maps = torch.rand(4, 3, 8, 12)
    torch.testing.assert_close(SpatialTransformer(3)(maps), F.avg_pool2d(maps, 2))


# It applies the affine map


@pytest.mark.parametrize("side", [8, 9])
def test_an_affine_map_of_a_quarter_turn_rotates_the_maps(side):
    identity, rotation = SpatialTransformer(3), SpatialTransformer(3)
    maps = torch.rand(4, 3, side, side)
    set_affine_map(rotation, [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(rotation(maps), torch.rot90(identity(maps), 1, (2, 3)), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(rotation(maps), identity(torch.rot90(maps, 1, (2, 3))), atol=1e-5, rtol=1e-5)


def test_an_affine_map_of_a_shift_shifts_the_maps_and_fills_with_zeros():
    identity, shift = SpatialTransformer(1), SpatialTransformer(1)
    maps = torch.rand(2, 1, 8, 8)
    set_affine_map(shift, [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]])  # a quarter of the width, in units of half the width
    expected = F.pad(identity(maps)[..., 1:], (0, 1))
    torch.testing.assert_close(shift(maps), expected)


def test_each_image_has_its_own_affine_map():
    transformer = SpatialTransformer(1)
    torch.nn.init.normal_(transformer.localise[-1].weight)
    maps = torch.rand(5, 1, 8, 8)
    torch.testing.assert_close(transformer(maps)[2:3], transformer(maps[2:3]))


# It learns


def test_gradients_reach_every_parameter_after_the_first_step():
    net, images, labels = STN("C[3]-ST[6]-C[4]-ST[6]-FC[6]", 3, 14), torch.rand(64, 1, 14, 14), torch.arange(64) % 3
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):  # zero weights in the last localisation layers block the first gradients
        optimiser.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        assert all(transformer.localise[-1].weight.grad.any() for transformer in (net.filters[2], net.filters[5]))
        optimiser.step()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


# It is a well-behaved module


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("C[3]-ST[4]", ["layer 2", "'ST[4]'", "'C[3]-ST[4]'", "6 parameters", "got 4"]),
        ("C[3]-ST[6,2]", ["layer 2", "'ST[6,2]'", "parameters", "2"]),
        ("C[3]-P[2]", ["layer 2", "'P'", "'C[3]-P[2]'", "ST"]),
        ("ST[6]-C[3]", ["layer 1", "'ST[6]'", "'ST[6]-C[3]'", "an STN has C and ST layers, beginning with C"]),
        ("C[3]-FC[5]", ["ST", "'C[3]-FC[5]'", "at least one ST"]),
        ("papr", ["'papr'", "'paper'"]),
    ],
)
def test_parse_errors_name_the_layer_and_the_architecture(text, fragments):
    with pytest.raises(ValueError, match=re.escape(fragments[0])) as error:
        STArchitecture.parse(text)
    for fragment in fragments:
        assert fragment in str(error.value)


def test_images_that_are_too_small_are_rejected():
    with pytest.raises(ValueError, match=r"layer 3 \('C\[6\]'\).*3x3.*2x2.*6x6"):
        STN("paper-small", 3, 6)
